package transformer_test

import (
	"context"
	"fmt"

	"github.com/dreamguard/dreamguard/embed/transformer"
)

// The model here is a tiny random one; a real one works alike.
func Example() {
	enc, err := transformer.Open("testdata/qwen3-tiny", transformer.Options{Layer: 3, Pooling: transformer.Mean})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer enc.Close()
	dst := make([]float32, 2*enc.ID().Dims)
	if err := enc.Encode(context.Background(), []string{"Send the report.", ""}, dst); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(enc.ID(), enc.Options().MaxTokens, dst[0] != 0, dst[32])
	// Output: transformer/qwen3-tiny (32 dims) 128 true 0
}

func ExampleEncoder_TokenVectors() {
	enc, err := transformer.Open("testdata/bert-tiny", transformer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer enc.Close()
	ids := enc.Tokenizer().AppendWithSpecial(nil, "report")
	states, err := enc.TokenVectors(context.Background(), [][]int32{ids})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(ids), "tokens,", len(states[0])/len(ids), "values each")
	// Output: 3 tokens, 32 values each
}
