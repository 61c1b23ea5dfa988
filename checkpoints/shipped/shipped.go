// Package shipped holds what DreamGuard ships with: a trained and calibrated
// artifact, with the table of the default text encoder. Programs that import it link
// its megabytes; package guard does not.
//
//	m, err := guard.OpenFS(shipped.FS)
//	enc, err := static.Open(shipped.FS)
//	m, err := guard.Open("artifact", guard.WithEncoderFS(shipped.FS))
//
// README.md is its model card: what it was trained on, what it promises, how it
// measured and where it does not hold. `make reproduce-default` makes the artifact
// again, `make encoder` the table, from all-MiniLM-L6-v2 (Apache-2.0, see NOTICE).
//
// The files of [FS] are used where they lie in the program: they have a method
// Bytes() []byte, which embed/static and guard/artifact know, and a method
// SHA256() string where the manifest names their digest, which a test has compared.
package shipped

import (
	"embed"
	"encoding/json"
	"io/fs"
	"sync"
	"unsafe"
)

// FS is the root of the shipped files.
var FS fs.FS = inPlace{}

//go:embed README.md calibration.json encoder.safetensors features.json manifest.json model.safetensors trained.bin
var files embed.FS

// The larger files once more as strings, whose bytes can be used in place: the linker
// keeps them once.
var (
	//go:embed encoder.safetensors
	encoder string
	//go:embed model.safetensors
	model string
	//go:embed features.json
	features string
)

// inPlace is files, whose larger ones can be used without a copy.
type inPlace struct{}

func (inPlace) Open(name string) (fs.File, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	switch name {
	case "encoder.safetensors":
		return held{f, name, encoder}, nil
	case "model.safetensors":
		return held{f, name, model}, nil
	case "features.json":
		return held{f, name, features}, nil
	}
	return f, nil
}

// held is an open file of which content and digest are known.
type held struct {
	fs.File
	name    string
	content string
}

// Bytes returns the content in place. It is read only: writing to it ends the
// program.
func (h held) Bytes() []byte { return unsafe.Slice(unsafe.StringData(h.content), len(h.content)) }

// SHA256 returns the digest of the content in hex.
func (h held) SHA256() string { return digests()[h.name] }

var digests = sync.OnceValue(func() map[string]string {
	var m struct{ Files map[string]string }
	b, err := files.ReadFile("manifest.json")
	if err != nil || json.Unmarshal(b, &m) != nil {
		return nil // the artifact's loader says what is wrong
	}
	return m.Files
})
