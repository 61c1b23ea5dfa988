// Package transformer runs frozen sentence encoders of the BERT family (MiniLM,
// BGE, E5) and of the Qwen3 family on GoMLX, from a plain folder of Hugging Face.
//
//	enc, err := transformer.Open("models/all-MiniLM-L6-v2", transformer.Options{Backend: "xla:cpu"})
//	defer enc.Close()
//	dst := make([]float32, len(texts)*enc.ID().Dims)
//	err = enc.Encode(ctx, texts, dst)
//
// The paper's encoder is one layer inside a decoder:
//
//	enc, err := transformer.Open("models/Qwen3-4B-Instruct-2507", transformer.Options{
//		Backend: "xla:cuda", Layer: 31, Pooling: transformer.Mean,
//	})
//
// The folder holds config.json, tokenizer.json and model.safetensors or its
// shards, of F32, F16 or BF16; all is computed in float32. What config.json or
// the files of sentence-transformers beside it ask for and this package does not
// do is an error that wraps [ErrUnsupported] and names the field: a model is never
// run as another one.
//
// Distillation works on token ids and token vectors:
//
//	ids := enc.Tokenizer().AppendWithSpecial(nil, "report")
//	states, err := enc.TokenVectors(ctx, [][]int32{ids}) // states[0] is len(ids) rows
//	err = enc.EncodeIDs(ctx, [][]int32{ids}, dst)
//
// An executable is compiled for every shape, which takes milliseconds on the Go
// backend and about a second on XLA. Sequences are therefore sorted by length and
// padded to a few lengths: give Encode many texts at a time.
//
// docs/reference/encoders.md has the layers, windows, limits and measured speed.
package transformer
