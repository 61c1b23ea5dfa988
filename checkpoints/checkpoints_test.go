package checkpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

func sample(step uint64) *Checkpoint {
	return &Checkpoint{
		Step: step, Config: "c1", Data: "d1", State: json.RawMessage(fmt.Sprintf(`{"step":%d}`, step)),
		Tensors: []safetensors.Tensor{
			{Name: "a", Shape: []int{2}, Data: []float32{float32(step), 1}},
			{Name: "b", Shape: []int{1, 1}, Data: []float32{-0.5}},
		},
	}
}

func save(t *testing.T, dir string, steps ...uint64) {
	t.Helper()
	for _, s := range steps {
		if err := Save(dir, sample(s)); err != nil {
			t.Fatal(err)
		}
	}
}

func paths(t *testing.T, dir string) []string {
	t.Helper()
	fs, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ps []string
	for _, f := range fs {
		ps = append(ps, f.path)
	}
	return ps
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoint")
	if _, _, err := Load(dir, "c1", "d1"); !errors.Is(err, ErrNone) {
		t.Errorf("no folder: %v", err)
	}
	save(t, dir, 5, 10, 20, 30)
	got, skipped, err := Load(dir, "c1", "d1")
	if err != nil || skipped != nil {
		t.Fatal(err, skipped)
	}
	if diff := cmp.Diff(sample(30), got); diff != "" {
		t.Error(diff)
	}
	if ps := paths(t, dir); len(ps) != Keep {
		t.Errorf("%d checkpoints are kept, want %d: %v", len(ps), Keep, ps)
	}
	opened, err := Open(paths(t, dir)[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(20), opened); diff != "" {
		t.Error(diff)
	}
}

func TestDamagedCheckpointIsPassedOver(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"torn":     func(b []byte) []byte { return b[:len(b)-3] },
		"empty":    func([]byte) []byte { return nil },
		"flipped":  func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"extended": func(b []byte) []byte { return append(b, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			save(t, dir, 10, 20)
			newest := paths(t, dir)[0]
			b, err := os.ReadFile(newest)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(newest, damage(b), 0o666); err != nil {
				t.Fatal(err)
			}
			got, skipped, err := Load(dir, "c1", "d1")
			if err != nil {
				t.Fatal(err)
			}
			if got.Step != 10 {
				t.Errorf("loaded step %d, want the one before", got.Step)
			}
			if len(skipped) != 1 || !errors.Is(skipped[0], ErrDamaged) || !strings.Contains(skipped[0].Error(), newest) {
				t.Errorf("skipped %v, want an error that names %s", skipped, newest)
			}
			// Going on from step 10 replaces what was damaged beyond it.
			save(t, dir, 15)
			if got, skipped, err := Load(dir, "c1", "d1"); err != nil || skipped != nil || got.Step != 15 {
				t.Errorf("after the next save: %v %v %v", got, skipped, err)
			}
		})
	}
}

func TestAllDamaged(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 10, 20)
	for _, p := range paths(t, dir) {
		if err := os.Truncate(p, 9); err != nil {
			t.Fatal(err)
		}
	}
	_, skipped, err := Load(dir, "c1", "d1")
	if !errors.Is(err, ErrDamaged) || len(skipped) != 2 {
		t.Errorf("error %v, skipped %v", err, skipped)
	}
}

// A file with a right digest and wrong content: not torn, but not ours either.
func TestForeignContent(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"", "hello", `{"a":1}`} {
		b := []byte(content)
		path := filepath.Join(dir, fileName(1, b))
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrDamaged) {
			t.Errorf("content %q: %v", content, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "model.safetensors")); !errors.Is(err, ErrDamaged) {
		t.Errorf("another name: %v", err)
	}
}

func TestMismatchNamesBothDigests(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 10)
	for _, c := range []struct{ config, data, what string }{{"c2", "d1", "c2"}, {"c1", "d2", "d2"}} {
		_, _, err := Load(dir, c.config, c.data)
		former := strings.Replace(c.what, "2", "1", 1)
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), c.what) || !strings.Contains(err.Error(), former) {
			t.Errorf("error %v, want one that names %s and %s", err, former, c.what)
		}
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, atomicfile.TempPrefix+"1-0")
	other := filepath.Join(dir, "notes.txt")
	for _, p := range []string{left, other} {
		if err := os.WriteFile(p, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	save(t, dir, 1)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary file of a killed writer is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file that is none of ours is gone: %v", err)
	}
}

// Whatever the bytes, under a name that vouches for them: an error or a
// checkpoint that can be saved again, never a panic.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	if err := Save(dir, sample(7)); err != nil {
		f.Fatal(err)
	}
	fs, err := list(dir)
	if err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(fs[0].path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), fileName(7, b))
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if err := Save(t.TempDir(), c); err != nil {
			t.Fatal(err)
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for step := range uint64(3) {
		err := Save(dir, &Checkpoint{
			Step: step, Config: "cfg", Data: "data", State: json.RawMessage(`{"lr":0.1}`),
			Tensors: []safetensors.Tensor{{Name: "w", Shape: []int{1}, Data: []float32{float32(step)}}},
		})
		if err != nil {
			panic(err)
		}
	}
	c, _, err := Load(dir, "cfg", "data")
	fmt.Println(c.Step, c.Tensors[0].Data, err)
	_, _, err = Load(dir, "other", "data")
	fmt.Println(errors.Is(err, ErrMismatch))
	// Output:
	// 2 [2] <nil>
	// true
}
