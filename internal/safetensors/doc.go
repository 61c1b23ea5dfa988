// Package safetensors reads and writes named float32 tensors in the safetensors
// format of Hugging Face: eight bytes of little-endian header length, a JSON
// header, then the data without gaps
// (https://huggingface.co/docs/safetensors, section Format).
//
//	err := safetensors.Write(f, []safetensors.Tensor{
//		{Name: "w", Shape: []int{2, 3}, Data: w},
//	}, map[string]string{"format": "1"})
//
//	b, err := os.ReadFile("model.safetensors")
//	tensors, meta, err := safetensors.Read(b)
//	for _, t := range tensors {
//		err := safetensors.Finite(t)
//	}
//
// ReadRaw and WriteRaw do the same for tensors of any dtype, such as tables of
// int8, and leave the values as they lie in the file.
//
// OpenFolder opens the weights of a Hugging Face folder, one file or many shards,
// and reads one tensor at a time:
//
//	d, err := safetensors.OpenFolder("models/qwen3")
//	defer d.Close()
//	raw, err := d.Read("model.norm.weight")
//	t, err := raw.Floats()
//
// All are meant for files that nobody vouches for: every size in a header is
// checked against the bytes that are there before anything is allocated.
package safetensors
