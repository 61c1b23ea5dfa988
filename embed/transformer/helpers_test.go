package transformer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// copyModel copies a folder of testdata without the golden file, so that a test
// can change it.
func copyModel(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "golden.safetensors" {
			continue
		}
		b, err := os.ReadFile(filepath.Join("testdata", name, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, e.Name()), b)
	}
	return dir
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// edit sets members of config.json; nil removes one.
func edit(t testing.TB, dir string, set map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	for k, v := range set {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	if b, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, b)
}

// weightsOf reads all tensors of a folder.
func weightsOf(t testing.TB, dir string) []safetensors.Raw {
	t.Helper()
	d, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var all []safetensors.Raw
	for _, name := range d.Names() {
		r, err := d.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// writeWeights makes raws the only weights of a folder, in one file.
func writeWeights(t testing.TB, dir string, raws []safetensors.Raw) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "model*.safetensors*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var buf bytes.Buffer
	if err := safetensors.WriteRaw(&buf, raws, nil); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), buf.Bytes())
}
