// Package shipped holds what DreamGuard ships with: the table of the default
// text encoder. Programs that import it link its megabytes; package guard does
// not.
//
//	enc, err := static.Open(shipped.FS)
//	m, err := guard.Open("artifact", guard.WithEncoderFS(shipped.FS))
//
// The files of [FS] are used where they lie in the program: they have a method
// Bytes() []byte, which embed/static and guard/artifact know.
//
// The table is made by `make encoder` from all-MiniLM-L6-v2 (Apache-2.0, see
// NOTICE); `dreamguard inspect checkpoints/shipped/encoder.safetensors` says how.
package shipped

import (
	"embed"
	"io/fs"
	"unsafe"
)

// FS is the root of the shipped files.
var FS fs.FS = inPlace{}

//go:embed encoder.safetensors
var files embed.FS

// encoder is the same bytes as in files: the linker keeps them once.
//
//go:embed encoder.safetensors
var encoder string

// inPlace is files, whose larger ones can be used without a copy.
type inPlace struct{}

func (inPlace) Open(name string) (fs.File, error) {
	f, err := files.Open(name)
	if err == nil && name == "encoder.safetensors" {
		return held{f, encoder}, nil
	}
	return f, err
}

// held is an open file of which the content is known.
type held struct {
	fs.File
	content string
}

// Bytes returns the content in place. It is read only: writing to it ends the
// program.
func (h held) Bytes() []byte { return unsafe.Slice(unsafe.StringData(h.content), len(h.content)) }
