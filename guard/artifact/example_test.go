package artifact_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/guard/artifact"
)

func ExampleTensors() {
	d := artifact.Dims{D: 256, F: 70, P: 256, H: 256, G: 16, C: 16, Q: 128}
	values := 0
	for _, s := range artifact.Tensors(d) {
		if !s.Export {
			continue
		}
		n := 1
		for _, size := range s.Shape {
			n *= size
		}
		values += n
	}
	fmt.Printf("%.1f million values\n", float64(values)/1e6)
	// Output: 1.5 million values
}
