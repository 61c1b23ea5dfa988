package pipeline

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

// inherit takes over from another run the results of the first stages, as far as they
// would be the same here, into a folder that has not done them. A kill leaves a folder
// that inherits the rest next time.
func (r *Run) inherit(from *Run) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if r.enc == nil {
		r.enc = from.enc
	}
	for _, stage := range Stages {
		theirs := from.ledger.Stages[stage]
		if r.ledger.Stages[stage] != nil { // done here
			continue
		}
		if theirs == nil {
			return nil
		}
		same, err := r.wouldBe(stage, from, theirs)
		if err != nil || !same {
			return err
		}
		for _, p := range slices.Sorted(maps.Keys(theirs.Outputs)) {
			if err := r.take(from, p); err != nil {
				return err
			}
		}
		if stage == "embed" { // vectors of test sets, which later stages left there
			extra, err := fs.Glob(os.DirFS(from.path("embed")), "*.arrow")
			if err != nil {
				return err
			}
			for _, p := range extra {
				if err := r.take(from, filepath.Join("embed", p)); err != nil {
					return err
				}
			}
		}
		rec := *theirs
		rec.Outputs, rec.Counts = maps.Clone(theirs.Outputs), maps.Clone(theirs.Counts)
		r.ledger.Stages[stage] = &rec
		if err := r.ledger.save(); err != nil {
			return err
		}
	}
	return nil
}

// wouldBe reports whether a stage of r has the inputs that it had in from.
func (r *Run) wouldBe(stage string, from *Run, theirs *StageRecord) (bool, error) {
	in := r.inputs(stage)
	if in == nil { // data: its source may not be there any more
		a, err := json.Marshal([]any{r.Config.Data, r.Config.Seed})
		if err != nil {
			return false, err
		}
		b, err := json.Marshal([]any{from.Config.Data, from.Config.Seed})
		return string(a) == string(b), err
	}
	digest, err := in.sum()
	return digest == theirs.Inputs, err
}

// take copies a file of another run. Segments of vectors, which are never changed,
// are linked where the file system can.
func (r *Run) take(from *Run, path string) error {
	src, dst := from.path(path), r.path(path)
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil {
		return err
	}
	if isSegment(path) {
		if err := os.Link(src, dst); err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	f, err := os.Open(src)
	if err != nil {
		return err
	}
	defer f.Close()
	return atomicfile.Write(dst, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}
