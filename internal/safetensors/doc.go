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
// Read and ReadRaw are meant for files that nobody vouches for: every size in the
// header is checked against the bytes that are there before anything is allocated.
package safetensors
