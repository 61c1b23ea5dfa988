package transformer

import (
	"fmt"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
)

// BenchmarkMiniLM is the time of one batch on every available backend; ms/text is
// the figure to compare. bench/encoders has the other engines beside it.
func BenchmarkMiniLM(b *testing.B) {
	dir := minilm(b)
	for _, s := range backend.Available() {
		if !s.Available {
			continue
		}
		e := mustOpen(b, dir, Options{Backend: s.Name})
		for _, tokens := range []int{64, 256} {
			for _, batch := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/%dx%d", s.Name, batch, tokens), func(b *testing.B) {
					ids := make([][]int32, batch)
					for i := range ids {
						ids[i] = make([]int32, tokens)
						for j := range ids[i] {
							ids[i][j] = int32(1000 + (7919*i+104729*j)%20000)
						}
					}
					dst := make([]float32, batch*e.ID().Dims)
					if err := e.EncodeIDs(b.Context(), ids, dst); err != nil { // compiles
						b.Fatal(err)
					}
					for b.Loop() {
						if err := e.EncodeIDs(b.Context(), ids, dst); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(1e3*b.Elapsed().Seconds()/float64(b.N*batch), "ms/text")
				})
			}
		}
	}
}
