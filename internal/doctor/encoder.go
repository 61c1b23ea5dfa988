package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/embed/tokenize"
	"github.com/dreamguard/dreamguard/embed/transformer"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// Encoder is a folder with the files of a text encoder: one static table, or a
// sentence transformer in the layout of Hugging Face.
type Encoder struct {
	Path   string `json:"path"`
	Usable bool   `json:"usable"`           // all files are there and whole
	Kind   string `json:"kind"`             // static or transformer
	Model  string `json:"model,omitempty"`  // static: what the table is called; transformer: model_type of config.json
	Width  int    `json:"width,omitempty"`  // length of a vector
	Bytes  int64  `json:"bytes,omitempty"`  // of the weights
	Reason string `json:"reason,omitempty"` // what is wrong
}

// examineEncoder reads the files of an encoder, all but the weights of a
// transformer, of which it reads the headers.
func examineEncoder(dir string) Encoder {
	if _, err := os.Stat(filepath.Join(dir, static.FileName)); err == nil {
		return examineTable(dir, os.DirFS(dir))
	}
	e := Encoder{Path: dir, Kind: "transformer"}
	e.conclude(e.transformer(dir))
	return e
}

// examineTable reads the static table in a file system.
func examineTable(name string, fsys fs.FS) Encoder {
	e := Encoder{Path: name, Kind: "static"}
	enc, err := static.Open(fsys)
	if err == nil {
		e.Model, e.Width, e.Bytes = enc.Table().Manifest.Name, enc.ID().Dims, int64(len(enc.File()))
	}
	e.conclude(err)
	return e
}

// conclude takes down the outcome of an examination.
func (e *Encoder) conclude(err error) {
	var path *fs.PathError
	switch {
	case err == nil:
		e.Usable = true
	case errors.As(err, &path):
		e.Reason = fmt.Sprintf("%s: %v", filepath.Base(path.Path), path.Err)
	default:
		e.Reason = err.Error()
	}
}

func (e *Encoder) transformer(dir string) error {
	var c struct {
		ModelType  string `json:"model_type"`
		HiddenSize int    `json:"hidden_size"`
	}
	raw, err := boundedfile.Read(filepath.Join(dir, "config.json"), 1<<20)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	e.Model, e.Width = c.ModelType, c.HiddenSize
	if err := transformer.CheckConfig(raw); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	if raw, err = boundedfile.Read(filepath.Join(dir, "tokenizer.json"), 64<<20); err != nil {
		return err
	}
	if _, err := tokenize.Parse(raw); err != nil {
		return err // names the file
	}
	weights, err := safetensors.OpenFolder(dir)
	if err != nil {
		return err
	}
	weights.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".safetensors") {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, entry.Name())) // follows links, which a cache consists of
		if err != nil {
			return err
		}
		e.Bytes += info.Size()
	}
	return nil
}
