package static_test

import (
	"bytes"
	"context"
	"fmt"
	"testing/fstest"

	"github.com/dreamguard/dreamguard/embed/static"
)

func ExampleOpen() {
	table := &static.Table{
		Manifest: static.Manifest{Name: "two-words", Dims: 2, Tokens: 3},
		Tokens:   []string{"[UNK]", "read", "send"},
		Rows:     []int8{0, 0, 100, 0, 0, 100},
		Scale:    []float32{1, 0.01, 0.02},
	}
	var file bytes.Buffer
	if err := table.Write(&file); err != nil {
		fmt.Println(err)
		return
	}
	enc, err := static.Open(fstest.MapFS{static.FileName: {Data: file.Bytes()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := make([]float32, enc.ID().Dims)
	err = enc.Encode(context.Background(), []string{"read, read, read, read and SEND"}, dst)
	fmt.Printf("%v %.2f %v\n", enc.ID(), dst, err)
	// Output: static/two-words (2 dims) [0.71 0.71] <nil>
}
