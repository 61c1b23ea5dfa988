package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Encoder is a folder in the layout of Hugging Face that a transformer encoder, or
// a distillation, would read.
type Encoder struct {
	Path    string `json:"path"`
	Usable  bool   `json:"usable"`            // all files are there
	Model   string `json:"model,omitempty"`   // model_type of config.json
	Width   int    `json:"width,omitempty"`   // hidden_size of config.json
	Weights int64  `json:"weights,omitempty"` // bytes of all safetensors files
	Reason  string `json:"reason,omitempty"`  // what is missing
}

// maxConfig bounds config.json, which takes a few kilobytes.
const maxConfig = 1 << 20

// examineEncoder looks for the files of an encoder and reads the smallest.
func examineEncoder(dir string) Encoder {
	e := Encoder{Path: dir}
	err := func() error {
		f, err := os.Open(filepath.Join(dir, "config.json"))
		if err != nil {
			return err
		}
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, maxConfig))
		if err != nil {
			return err
		}
		var c struct {
			ModelType  string `json:"model_type"`
			HiddenSize int    `json:"hidden_size"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("config.json: %w", err)
		}
		e.Model, e.Width = c.ModelType, c.HiddenSize
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".safetensors") {
				continue
			}
			info, err := os.Stat(filepath.Join(dir, entry.Name())) // follows links, as caches use them
			if err != nil {
				return err
			}
			e.Weights += info.Size()
		}
		if e.Weights == 0 {
			return errors.New("no *.safetensors: weights in another format are not read")
		}
		return nil
	}()
	var path *fs.PathError
	switch {
	case err == nil:
		e.Usable = true
	case errors.As(err, &path):
		e.Reason = fmt.Sprintf("%s: %v", filepath.Base(path.Path), path.Err)
	default:
		e.Reason = err.Error()
	}
	return e
}
