package boundedfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{5, 6} {
		if b, err := boundedfile.Read(path, limit); err != nil || string(b) != "12345" {
			t.Errorf("limit %d: %q, %v", limit, b, err)
		}
	}
	if b, err := boundedfile.Read(path, 4); b != nil || !errors.Is(err, boundedfile.ErrTooLarge) || !strings.Contains(err.Error(), path) {
		t.Errorf("limit 4: %q, %v", b, err)
	}
	if _, err := boundedfile.Read(path+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "it is a folder", os.DevNull: "it is a device", link: "it is a device"} {
		_, err := boundedfile.Read(path, 4)
		if !errors.Is(err, boundedfile.ErrNotRegular) || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
