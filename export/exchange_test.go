package export

import (
	"os"
	"path/filepath"
	"testing"
)

// The portable way must do what the one-step exchange does.
func TestExchange(t *testing.T) {
	for name, swap := range map[string]func(temp, dir string) error{"system": exchange, "renames": exchangeByRename} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			temp, dir := filepath.Join(parent, "temp"), filepath.Join(parent, "dir")
			for _, d := range []string{temp, dir} {
				if err := os.Mkdir(d, 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(d, "from"), []byte(filepath.Base(d)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := swap(temp, dir); err != nil {
				t.Fatal(err)
			}
			for d, want := range map[string]string{temp: "dir", dir: "temp"} {
				if b, err := os.ReadFile(filepath.Join(d, "from")); err != nil || string(b) != want {
					t.Errorf("%s holds %q (%v), want %q", d, b, err, want)
				}
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 2 {
				t.Errorf("%v (%v)", entries, err)
			}
		})
	}
}
