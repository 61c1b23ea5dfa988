package artifact_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/dreamguard/dreamguard/guard/artifact"
)

// knownFS states the digest of every file as sum says.
type knownFS struct {
	fs.FS
	sum func(name string) string
}

func (k knownFS) Open(name string) (fs.File, error) {
	f, err := k.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return knownFile{f, k.sum(name)}, nil
}

type knownFile struct {
	fs.File
	sum string
}

func (k knownFile) SHA256() string { return k.sum }

func TestKnownDigests(t *testing.T) {
	files := build(t, tensors(), nil, nil)
	right := func(name string) string { return artifact.Sum(files[name].Data) }
	if _, err := artifact.OpenFS(knownFS{files, right}); err != nil {
		t.Errorf("right digests: %v", err)
	}
	if _, err := artifact.OpenFS(knownFS{files, func(string) string { return "" }}); err != nil {
		t.Errorf("no digests: %v", err)
	}
	other := func(string) string { return artifact.Sum(nil) }
	if _, err := artifact.OpenFS(knownFS{files, other}); !errors.Is(err, artifact.ErrDigest) {
		t.Errorf("a file whose stated digest is not that of the manifest: %v, want ErrDigest", err)
	}
	files[artifact.ModelFile].Data[300] ^= 1
	if _, err := artifact.OpenFS(knownFS{files, func(string) string { return "" }}); !errors.Is(err, artifact.ErrDigest) {
		t.Errorf("a changed file of unknown digest: %v, want ErrDigest", err)
	}
}
