package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// Names of the weights in a folder of Hugging Face.
const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// Bounds on an index. The largest models published have some 200 shards.
const (
	maxIndex  = MaxHeader
	maxShards = 1024
)

// Folder is the weights of a model in a folder as Hugging Face lays it out:
// model.safetensors, or the shards that model.safetensors.index.json lists.
type Folder struct {
	files  []*os.File
	names  []string
	byName map[string]*File
}

// OpenFolder opens the weights in dir: the single file where there is one, as
// the reference implementation does, else the shards. The header of every file is
// checked as [Read] does it; no tensor is read. Symbolic links are followed,
// since the cache of Hugging Face consists of them, but an index can only name
// files in the folder itself. Errors are those of [Read], [ErrIndex],
// [ErrMissing] for a tensor that is not in the shard that the index names, and
// fs.ErrNotExist where the folder has neither file.
func OpenFolder(dir string) (*Folder, error) {
	d := &Folder{byName: map[string]*File{}}
	err := d.open(dir)
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Folder) open(dir string) error {
	f, err := d.add(filepath.Join(dir, singleFile))
	if err == nil {
		for _, name := range f.Names() {
			d.names = append(d.names, name)
			d.byName[name] = f
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path := filepath.Join(dir, indexFile)
	b, err := boundedfile.Read(path, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has neither %s nor %s: %w", dir, singleFile, indexFile, fs.ErrNotExist)
	}
	if errors.Is(err, boundedfile.ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	if err != nil {
		return err
	}
	shardOf, err := parseIndex(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	shards := map[string]*File{}
	for _, name := range slices.Sorted(maps.Keys(shardOf)) {
		shard := shardOf[name]
		f := shards[shard]
		if f == nil {
			if f, err = d.add(filepath.Join(dir, shard)); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			shards[shard] = f
		}
		if _, ok := f.byName[name]; !ok {
			return fmt.Errorf("%s: %w %.80q in shard %s", path, ErrMissing, name, shard)
		}
		d.names = append(d.names, name)
		d.byName[name] = f
	}
	return nil
}

// add opens one file and reads its header.
func (d *Folder) add(path string) (*File, error) {
	r, err := boundedfile.Open(path)
	if err != nil {
		return nil, err
	}
	d.files = append(d.files, r)
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	f, err := NewFile(r, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// parseIndex returns the shard of every tensor.
func parseIndex(b []byte) (map[string]string, error) {
	if len(b) > maxIndex {
		return nil, fmt.Errorf("%w: over %d bytes", ErrIndex, maxIndex)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(b))}
	var shardOf map[string]string
	shards := map[string]bool{}
	err := p.object(func(key string) error {
		if key != "weight_map" {
			var ignored any
			return p.dec.Decode(&ignored)
		}
		if shardOf != nil {
			return fmt.Errorf("%w: two weight_map", ErrDuplicate)
		}
		shardOf = map[string]string{}
		return p.object(func(name string) error {
			shard, err := p.text()
			if err != nil {
				return err
			}
			if _, ok := shardOf[name]; ok {
				return fmt.Errorf("%w: tensor %.80q", ErrDuplicate, name)
			}
			if strings.ContainsAny(shard, `/\:`) || !strings.HasSuffix(shard, ".safetensors") {
				return fmt.Errorf("tensor %.80q: %.80q is not the name of a safetensors file in the folder", name, shard)
			}
			shardOf[name] = shard
			if shards[shard] = true; len(shards) > maxShards {
				return fmt.Errorf("more than %d shards", maxShards)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	if len(shardOf) == 0 {
		return nil, fmt.Errorf("%w: no weight_map, or an empty one", ErrIndex)
	}
	return shardOf, nil
}

// Names lists the tensors. Close does not change the list.
func (d *Folder) Names() []string { return d.names }

// Has reports whether there is a tensor of that name.
func (d *Folder) Has(name string) bool { return d.byName[name] != nil }

// Shape returns the shape of a tensor, or [ErrMissing].
func (d *Folder) Shape(name string) ([]int, error) {
	f := d.byName[name]
	if f == nil {
		return nil, fmt.Errorf("%w %.80q", ErrMissing, name)
	}
	return f.byName[name].shape, nil
}

// Read reads one tensor, or returns [ErrMissing].
func (d *Folder) Read(name string) (Raw, error) {
	f := d.byName[name]
	if f == nil {
		return Raw{}, fmt.Errorf("%w %.80q", ErrMissing, name)
	}
	return f.Read(name)
}

// Close closes the files. What was read stays valid.
func (d *Folder) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	d.files = nil
	return errors.Join(errs...)
}
