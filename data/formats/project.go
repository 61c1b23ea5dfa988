package formats

import (
	"bytes"
	"io"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

// Project is the project's own JSON lines and, through [Import], Parquet. Labels
// are taken as they stand.
type Project struct{}

var parquetMagic = []byte("PAR1")

// Name implements [Format].
func (Project) Name() string { return "dreamguard" }

// Detect implements [Format].
func (Project) Detect(head []byte) bool {
	k := look(head)
	return bytes.HasPrefix(head, parquetMagic) || k[".steps"] || k[".id"] && k[".group"] && k[".task"]
}

// Import implements [Format]. A Parquet stream is an error: use [Import].
func (Project) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	return importStore(store.NewReader(r, name), name, emit)
}

func importStore(r *store.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	s := newSink(Project{}.Name(), name, emit)
	for {
		t, err := r.Next()
		if err == io.EOF {
			return s.finish(nil)
		}
		if err != nil {
			return s.Report, err
		}
		if err := s.put(t, r.N()); err != nil {
			return s.finish(err)
		}
	}
}
