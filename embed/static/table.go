package static

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// FileName is the name of the table in a folder or an artifact.
const FileName = "encoder.safetensors"

// Format is the metadata entry "format" of the files that this build reads.
const Format = "dreamguard static encoder 1"

// Bounds on a table. They keep a file that nobody vouches for from asking for
// memory that it does not itself take, and from overflowing a sum.
const (
	MaxTokens = 1 << 20
	MaxDims   = 4096
	MaxScale  = 1 << 20
	MaxBytes  = 1 << 30 // of the file
	maxToken  = 1 << 10 // bytes of one token
)

// Errors of [Open], [Parse], [ParseTable] and [Table.Write]. They come wrapped in
// a message that names the part of the file: test with errors.Is. What is wrong
// with the container is an error of internal/safetensors.
var (
	// ErrFormat: the file is not a static encoder, or one of another version.
	ErrFormat = errors.New("static: not a static encoder of this format")
	// ErrManifest: the manifest is malformed or contradicts the table.
	ErrManifest = errors.New("static: bad manifest")
	// ErrTable: a tensor is missing, too many, or of the wrong type or shape.
	ErrTable = errors.New("static: bad table")
	// ErrScale: a row's scale is negative, not a number or out of range.
	ErrScale = errors.New("static: bad scale")
	// ErrVocabulary: the vocabulary does not fit the table, or has no use.
	ErrVocabulary = errors.New("static: bad vocabulary")
	// ErrTooLarge: the file is larger than MaxBytes.
	ErrTooLarge = errors.New("static: file is too large")
)

// Manifest says what a table is and where it comes from.
type Manifest struct {
	Name    string  `json:"name"`    // for people, for example "all-MiniLM-L6-v2-static-256"
	Dims    int     `json:"dims"`    // vector length
	Tokens  int     `json:"tokens"`  // rows of the table
	Source  Source  `json:"source"`  // the encoder that was distilled
	Recipe  Recipe  `json:"recipe"`  // how
	Corpus  Corpus  `json:"corpus"`  // on which texts
	Licence Licence `json:"licence"` // of the table, which follows from that of the source
}

// Source identifies the sentence encoder that taught the table.
type Source struct {
	Name      string `json:"name"`      // as its publisher calls it
	Weights   string `json:"weights"`   // sha256 of its weights file
	Tokenizer string `json:"tokenizer"` // sha256 of its tokenizer.json
	Encoder   string `json:"encoder"`   // digest of the identity that the teacher's text vectors have: weights, layer, pooling, windows
}

// Recipe holds the settings of the distillation (package distill).
type Recipe struct {
	Version int     `json:"version"` // of the method, distill.Version
	SIF     float64 `json:"sif"`     // a of the token weight a/(a+p)
	Ridge   float64 `json:"ridge"`   // penalty of the map from pooled token vectors to the teacher's text vectors
	Tokens  float64 `json:"tokens"`  // penalty of the correction of single tokens; 0 = none
	Seed    uint64  `json:"seed"`    // of the draw of texts
}

// Corpus identifies the texts that the table was fitted on.
type Corpus struct {
	Files  []File `json:"files"`  // trajectories read
	Texts  int    `json:"texts"`  // distinct texts, whose tokens were counted
	Tokens int64  `json:"tokens"` // counted
	Fitted int    `json:"fitted"` // texts that the teacher encoded for the ridge map
	Digest string `json:"digest"` // sha256 over the fitted texts, in order
}

// File is one file of trajectories.
type File struct {
	Name   string `json:"name"` // without folders
	Digest string `json:"digest"`
	Runs   int    `json:"runs"`
}

// Licence is what the table may be used under.
type Licence struct {
	SPDX   string `json:"spdx"`   // identifier, for example Apache-2.0
	Notice string `json:"notice"` // whom to name
}

// Table is the content of an encoder file.
type Table struct {
	Manifest Manifest
	Tokens   []string  // uncased WordPiece vocabulary; the id of a token is its index
	Rows     []int8    // [len(Tokens), Manifest.Dims] row-major
	Scale    []float32 // [len(Tokens)], 0 to MaxScale
}

// Vector writes the vector of a token, Scale * Rows, to dst of length Dims.
func (t *Table) Vector(dst []float32, id int) {
	row := t.Rows[id*t.Manifest.Dims:][:len(dst)]
	for i, q := range row {
		dst[i] = t.Scale[id] * float32(q)
	}
}

// check reports what of t cannot be written or used.
func (t *Table) check() error {
	if err := t.checkValues(); err != nil {
		return err
	}
	seen := make(map[string]struct{}, len(t.Tokens))
	for i, s := range t.Tokens {
		if _, twice := seen[s]; twice {
			return fmt.Errorf("%w: token %d, %.40q, stands there twice", ErrVocabulary, i, s)
		}
		seen[s] = struct{}{}
	}
	return nil
}

// checkValues is check but for tokens that stand there twice.
func (t *Table) checkValues() error {
	m := &t.Manifest
	switch {
	case m.Name == "" || len(m.Name) > 200:
		return fmt.Errorf("%w: name is %.40q: want 1 to 200 bytes", ErrManifest, m.Name)
	case m.Dims < 1 || m.Dims > MaxDims:
		return fmt.Errorf("%w: dims is %d: want 1 to %d", ErrManifest, m.Dims, MaxDims)
	case m.Tokens < 1 || m.Tokens > MaxTokens:
		return fmt.Errorf("%w: tokens is %d: want 1 to %d", ErrManifest, m.Tokens, MaxTokens)
	case len(t.Tokens) != m.Tokens:
		return fmt.Errorf("%w: it holds %d tokens, the manifest says %d", ErrVocabulary, len(t.Tokens), m.Tokens)
	case len(t.Rows) != m.Tokens*m.Dims:
		return fmt.Errorf("%w: rows has %d values, want %d x %d", ErrTable, len(t.Rows), m.Tokens, m.Dims)
	case len(t.Scale) != m.Tokens:
		return fmt.Errorf("%w: scale has %d values, want %d", ErrTable, len(t.Scale), m.Tokens)
	}
	for i, s := range t.Scale {
		if !(s >= 0 && s <= MaxScale) {
			return fmt.Errorf("%w: of token %d (%.20q) it is %v: want 0 to %d", ErrScale, i, t.Tokens[i], s, MaxScale)
		}
	}
	for i, s := range t.Tokens {
		if s == "" || len(s) > maxToken || !utf8.ValidString(s) || strings.Contains(s, "\n") {
			return fmt.Errorf("%w: token %d is %.20q: want 1 to %d bytes of UTF-8 without newline", ErrVocabulary, i, s, maxToken)
		}
	}
	return nil
}

// Write writes the file. Equal tables give equal bytes. Errors are those of w,
// [ErrManifest], [ErrTable], [ErrScale] and [ErrVocabulary].
func (t *Table) Write(w io.Writer) error {
	if err := t.check(); err != nil {
		return err
	}
	manifest, err := json.Marshal(t.Manifest)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	vocabulary := []byte(strings.Join(t.Tokens, "\n"))
	scale := safetensors.Tensor{Name: "scale", Shape: []int{len(t.Scale)}, Data: t.Scale}.Raw()
	return safetensors.WriteRaw(w, []safetensors.Raw{
		{Name: "rows", DType: "I8", Shape: []int{len(t.Tokens), t.Manifest.Dims}, Bytes: bytesOf(t.Rows)},
		scale,
		{Name: "vocabulary", DType: "U8", Shape: []int{len(vocabulary)}, Bytes: vocabulary},
	}, map[string]string{"format": Format, "manifest": string(manifest)})
}

// ParseTable reads a file. Rows, and where the alignment of b and the byte order
// of the machine allow it Scale, share memory with b: do not change it.
func ParseTable(b []byte) (*Table, error) {
	t, err := parseTable(b)
	if err != nil {
		return nil, err
	}
	return t, t.check()
}

// parseTable is ParseTable without the check of the values.
func parseTable(b []byte) (*Table, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), MaxBytes)
	}
	raws, meta, err := safetensors.ReadRaw(b)
	if err != nil {
		return nil, err
	}
	if got := meta["format"]; got != Format {
		return nil, fmt.Errorf("%w: its format is %.60q, want %q: make the file again with `dreamguard encoder distill`", ErrFormat, got, Format)
	}
	t := new(Table)
	dec := json.NewDecoder(strings.NewReader(meta["manifest"]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t.Manifest); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: text after the JSON value", ErrManifest)
	}
	byName := map[string]safetensors.Raw{}
	for _, r := range raws {
		byName[r.Name] = r
	}
	for _, want := range []struct {
		name, dtype string
		dims        int
	}{{"rows", "I8", 2}, {"scale", "F32", 1}, {"vocabulary", "U8", 1}} {
		r, ok := byName[want.name]
		if !ok {
			return nil, fmt.Errorf("%w: %s is missing", ErrTable, want.name)
		}
		if r.DType != want.dtype || len(r.Shape) != want.dims {
			return nil, fmt.Errorf("%w: %s is %.10s of shape %.40s, want %s of %d dimensions", ErrTable, want.name, r.DType, fmt.Sprint(r.Shape), want.dtype, want.dims)
		}
	}
	if len(raws) != 3 {
		return nil, fmt.Errorf("%w: it holds %d tensors, want rows, scale and vocabulary", ErrTable, len(raws))
	}
	rows := byName["rows"]
	if m := t.Manifest; rows.Shape[0] != m.Tokens || rows.Shape[1] != m.Dims {
		return nil, fmt.Errorf("%w: rows is %d x %d, the manifest says %d x %d", ErrTable, rows.Shape[0], rows.Shape[1], m.Tokens, m.Dims)
	}
	scale, err := byName["scale"].Floats()
	if err != nil {
		return nil, err
	}
	vocabulary := byName["vocabulary"].Bytes
	if n := bytes.Count(vocabulary, []byte("\n")) + 1; n != t.Manifest.Tokens {
		return nil, fmt.Errorf("%w: it holds %d tokens, the manifest says %d", ErrVocabulary, n, t.Manifest.Tokens)
	}
	t.Rows, t.Scale = int8sOf(rows.Bytes), scale.Data
	t.Tokens = strings.Split(string(vocabulary), "\n")
	return t, nil
}

// bytesOf and int8sOf look at the same memory as the other type.
func bytesOf(x []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
func int8sOf(x []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
