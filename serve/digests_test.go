package serve

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// A large file that is known is mapped, and the encoder in it is the same.
func TestMappedEncoder(t *testing.T) {
	table, err := fs.ReadFile(shipped.FS, artifact.EncoderFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, artifact.EncoderFile)
	if err := os.WriteFile(path, table, 0o644); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &digestFS{fsys: os.DirFS(dir), dir: dir, now: time.Now(), memory: map[string]known{}}
	if e := d.encoder(); e != nil {
		t.Error("a file whose digest is not known was believed")
	}
	d.memory[path] = known{Size: info.Size(), MTime: info.ModTime().UnixNano(), Inode: inode(info), SHA256: artifact.Sum(table)}
	f, err := d.Open(artifact.EncoderFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, ok := f.(mappedFile)
	if !ok {
		t.Skip("this system does not map files")
	}
	if !bytes.Equal(m.Bytes(), table) || m.SHA256() != artifact.Sum(table) {
		t.Error("the mapped content or its digest is another")
	}
	want, err := static.Open(shipped.FS)
	if err != nil {
		t.Fatal(err)
	}
	if e := d.encoder(); e == nil || e.ID() != want.ID() {
		t.Errorf("got %v, want %v", e, want.ID())
	}
	if err := os.Chtimes(path, then.Add(1), then.Add(1)); err != nil {
		t.Fatal(err)
	}
	if got := m.SHA256(); got != "" {
		t.Error("a file that was changed while it is open has the old digest")
	}
	if d.encoder() != nil {
		t.Error("a file with another time was believed")
	}
}
