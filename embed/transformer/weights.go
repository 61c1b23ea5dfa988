package transformer

import (
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// param is one weight of the graph, made of one or more tensors of the files.
type param struct {
	name  string   // in the graph
	from  []string // tensors of the files, one below the other
	rows  []int    // first dimension of each; empty for vectors
	width int      // last dimension of each
	table bool     // a matrix that is looked up and not multiplied: stays as it is
}

// linear is the weight of a linear layer, or of several that share their input:
// [out, in] each in the files, [in, sum of out] in the graph, which backends
// multiply without transposing it again on every call.
func linear(name string, in int, parts ...part) param {
	p := param{name: name, width: in}
	for _, x := range parts {
		p.from, p.rows = append(p.from, x.name), append(p.rows, x.out)
	}
	return p
}

// part is one of the linear layers that a param joins.
type part struct {
	name string
	out  int
}

// vectors joins vectors, such as the biases of layers that share their input.
func vectors(name string, parts ...part) param {
	p := param{name: name}
	for _, x := range parts {
		p.from, p.rows = append(p.from, x.name), append(p.rows, x.out)
	}
	return p
}

// table is a matrix whose rows are looked up.
func table(name, from string, rows, width int) param {
	return param{name: name, from: []string{from}, rows: []int{rows}, width: width, table: true}
}

// shape is the shape in the graph.
func (p param) shape() []int {
	n := 0
	for _, r := range p.rows {
		n += r
	}
	switch {
	case p.width == 0:
		return []int{n}
	case p.table:
		return []int{n, p.width}
	}
	return []int{p.width, n}
}

// check compares the shapes in the files with what the graph needs, before any
// of it is read.
func (p param) check(d *safetensors.Folder) error {
	for i, name := range p.from {
		want := []int{p.rows[i]}
		if p.width > 0 {
			want = append(want, p.width)
		}
		got, err := d.Shape(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrWeights, err)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%w: tensor %s has shape %v, want %v", ErrWeights, name, got, want)
		}
	}
	return nil
}

// load reads the weight, puts it on the backend and adds what it read to the
// digest. Values that are not finite are refused.
func (p param) load(d *safetensors.Folder, be compute.Backend, digest hash.Hash) (*tensors.Tensor, error) {
	out, err := tensors.FromShapeForBackend(be, 0, shapes.Make(dtypes.Float32, p.shape()...))
	if err != nil {
		return nil, fmt.Errorf("allocate %s: %w", p.name, err)
	}
	var failed error
	err = tensors.MutableFlatData(out, func(flat []float32) { failed = p.fill(flat, d, digest) })
	if failed != nil {
		err = failed
	}
	if err == nil {
		err = out.ToDevice(be, 0)
	}
	if err != nil {
		out.FinalizeAll() // the first error says more
		return nil, err
	}
	return out, nil
}

func (p param) fill(flat []float32, d *safetensors.Folder, digest hash.Hash) error {
	total := p.shape()[len(p.shape())-1]
	at := 0
	for i, name := range p.from {
		raw, err := d.Read(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrWeights, err)
		}
		// Every part is preceded by its length, so that no two models share a digest.
		fmt.Fprintf(digest, "%s %s %v ", p.name, raw.DType, raw.Shape)
		digest.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(raw.Bytes))))
		digest.Write(raw.Bytes)
		t, err := raw.Floats()
		if err == nil {
			err = safetensors.Finite(t)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrWeights, err)
		}
		if p.width == 0 || p.table {
			copy(flat[at:], t.Data)
			at += len(t.Data)
			continue
		}
		transpose(flat[at:], t.Data, p.rows[i], p.width, total)
		at += p.rows[i]
	}
	return nil
}

// transpose writes src [rows, cols] to dst, whose rows are stride apart, as
// [cols, rows]. It goes by blocks that fit the cache: weights of gigabytes are
// turned when a model is loaded.
func transpose(dst, src []float32, rows, cols, stride int) {
	const block = 32
	for r0 := 0; r0 < rows; r0 += block {
		r1 := min(r0+block, rows)
		for c0 := 0; c0 < cols; c0 += block {
			for c := c0; c < min(c0+block, cols); c++ {
				row := dst[c*stride+r0 : c*stride+r1]
				for i := range row {
					row[i] = src[(r0+i)*cols+c]
				}
			}
		}
	}
}
