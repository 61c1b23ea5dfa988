package distill_test

import (
	"context"
	"fmt"

	"github.com/dreamguard/dreamguard/embed/distill"
)

// A teacher that gives its two words one dimension each is learned exactly.
func ExampleFit() {
	in := distill.Input{
		Tokens:  []float32{0, 0, 1, 0, 0, 1}, // [UNK], read, send
		Counts:  []int64{0, 2, 2},
		Texts:   [][]int32{{1}, {2}, {1, 1}, {2}},
		Teacher: []float32{1, 0, 0, 1, 1, 0, 0, 1},
	}
	res, err := distill.Fit(context.Background(), in, distill.Options{Dims: 2, SIF: 1, Ridge: 0.01, Tokens: 1, Tolerance: 1e-9})
	if err != nil {
		fmt.Println(err)
		return
	}
	read, send := res.Rows[2:4], res.Rows[4:6]
	fmt.Println("inner product:", int(read[0])*int(send[0])+int(read[1])*int(send[1]))
	// Output: inner product: 0
}
