package static_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

func TestTableRoundTrip(t *testing.T) {
	in := small()
	in.Manifest.Licence.Notice = "a & b <c>"
	in.Manifest.Recipe = static.Recipe{Version: 1, SIF: 0.1, Ridge: 0.2, Tokens: 1, Seed: 5}
	in.Manifest.Corpus = static.Corpus{Files: []static.File{{Name: "train.jsonl.gz", Digest: "x", Runs: 3}}, Texts: 9, Tokens: 1 << 40}
	b := file(t, in)
	out, err := static.ParseTable(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if again := file(t, out); !bytes.Equal(b, again) {
		t.Error("writing what was read gives other bytes")
	}
	// Whatever the alignment of the bytes, the same table.
	shifted := append(make([]byte, 1, len(b)+1), b...)[1:]
	if out, err = static.ParseTable(shifted); err != nil || cmp.Diff(in, out) != "" {
		t.Errorf("shifted by a byte: %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	tests := []struct {
		name string
		edit func(*static.Table)
		want error
	}{
		{"no name", func(t *static.Table) { t.Manifest.Name = "" }, static.ErrManifest},
		{"dims", func(t *static.Table) { t.Manifest.Dims = 0 }, static.ErrManifest},
		{"tokens", func(t *static.Table) { t.Manifest.Tokens = static.MaxTokens + 1 }, static.ErrManifest},
		{"token missing", func(t *static.Table) { t.Tokens = t.Tokens[1:] }, static.ErrVocabulary},
		{"token empty", func(t *static.Table) { t.Tokens[0] = "" }, static.ErrVocabulary},
		{"token twice", func(t *static.Table) { t.Tokens[0] = "pay" }, static.ErrVocabulary},
		{"token of two lines", func(t *static.Table) { t.Tokens[0] = "a\nb" }, static.ErrVocabulary},
		{"token not UTF-8", func(t *static.Table) { t.Tokens[0] = "\xff" }, static.ErrVocabulary},
		{"rows", func(t *static.Table) { t.Rows = t.Rows[1:] }, static.ErrTable},
		{"scales", func(t *static.Table) { t.Scale = t.Scale[1:] }, static.ErrTable},
		{"scale NaN", func(t *static.Table) { t.Scale[0] = float32(math.NaN()) }, static.ErrScale},
		{"scale infinite", func(t *static.Table) { t.Scale[0] = float32(math.Inf(1)) }, static.ErrScale},
		{"scale negative", func(t *static.Table) { t.Scale[0] = -1 }, static.ErrScale},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := small()
			tt.edit(table)
			var b bytes.Buffer
			if err := table.Write(&b); !errors.Is(err, tt.want) || b.Len() > 0 {
				t.Errorf("error %v, want %v; %d bytes written", err, tt.want, b.Len())
			}
		})
	}
}

// parts are the pieces of a file that the writer would not write.
type parts struct {
	raws []safetensors.Raw
	meta map[string]string
}

func (p *parts) raw(name string) *safetensors.Raw {
	return &p.raws[slices.IndexFunc(p.raws, func(r safetensors.Raw) bool { return r.Name == name })]
}

func (p *parts) manifest(t *testing.T, edit func(map[string]any)) {
	var m map[string]any
	if err := json.Unmarshal([]byte(p.meta["manifest"]), &m); err != nil {
		t.Fatal(err)
	}
	edit(m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	p.meta["manifest"] = string(b)
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		edit func(*testing.T, *parts)
		want error
	}{
		{"no metadata", func(_ *testing.T, p *parts) { p.meta = nil }, static.ErrFormat},
		{"a later format", func(_ *testing.T, p *parts) { p.meta["format"] = "dreamguard static encoder 2" }, static.ErrFormat},
		{"no manifest", func(_ *testing.T, p *parts) { delete(p.meta, "manifest") }, static.ErrManifest},
		{"manifest not JSON", func(_ *testing.T, p *parts) { p.meta["manifest"] = "{" }, static.ErrManifest},
		{"text after the manifest", func(_ *testing.T, p *parts) { p.meta["manifest"] += "{}" }, static.ErrManifest},
		{"unknown field", func(t *testing.T, p *parts) { p.manifest(t, func(m map[string]any) { m["x"] = 1 }) }, static.ErrManifest},
		{"other dims", func(t *testing.T, p *parts) { p.manifest(t, func(m map[string]any) { m["dims"] = 3 }) }, static.ErrTable},
		{"huge dims", func(t *testing.T, p *parts) { p.manifest(t, func(m map[string]any) { m["dims"] = 1 << 40 }) }, static.ErrTable},
		{"other tokens", func(t *testing.T, p *parts) { p.manifest(t, func(m map[string]any) { m["tokens"] = 1 }) }, static.ErrTable},
		{"rows missing", func(_ *testing.T, p *parts) {
			*p.raw("rows") = safetensors.Raw{Name: "x", DType: "U8", Shape: []int{0}}
		}, static.ErrTable},
		{"rows U8", func(_ *testing.T, p *parts) { p.raw("rows").DType = "U8" }, static.ErrTable},
		{"rows flat", func(_ *testing.T, p *parts) { r := p.raw("rows"); r.Shape = []int{len(r.Bytes)} }, static.ErrTable},
		{"rows transposed", func(_ *testing.T, p *parts) { slices.Reverse(p.raw("rows").Shape) }, static.ErrTable},
		{"one tensor more", func(_ *testing.T, p *parts) {
			p.raws = append(p.raws, safetensors.Raw{Name: "x", DType: "U8", Shape: []int{1}, Bytes: []byte{0}})
		}, static.ErrTable},
		{"scale I32", func(_ *testing.T, p *parts) { p.raw("scale").DType = "I32" }, static.ErrTable},
		{"scale short", func(_ *testing.T, p *parts) { r := p.raw("scale"); r.Shape[0]--; r.Bytes = r.Bytes[4:] }, static.ErrTable},
		{"scale NaN", func(_ *testing.T, p *parts) { copy(p.raw("scale").Bytes, []byte{0, 0, 0xc0, 0x7f}) }, static.ErrScale},
		{"scale infinite", func(_ *testing.T, p *parts) { copy(p.raw("scale").Bytes, []byte{0, 0, 0x80, 0x7f}) }, static.ErrScale},
		{"scale too large", func(_ *testing.T, p *parts) { copy(p.raw("scale").Bytes, []byte{0, 0, 0, 0x7f}) }, static.ErrScale},
		{"a token more", func(_ *testing.T, p *parts) {
			r := p.raw("vocabulary")
			r.Bytes = append(r.Bytes, "\nx"...)
			r.Shape[0] += 2
		}, static.ErrVocabulary},
		{"a token twice", func(_ *testing.T, p *parts) { r := p.raw("vocabulary"); copy(r.Bytes, "[UNK]") }, static.ErrVocabulary},
		{"vocabulary not UTF-8", func(_ *testing.T, p *parts) { p.raw("vocabulary").Bytes[0] = 0xff }, static.ErrVocabulary},
		{"no unknown token", func(_ *testing.T, p *parts) { copy(p.raw("vocabulary").Bytes[6:], "[UNX]") }, static.ErrVocabulary},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raws, meta, err := safetensors.ReadRaw(file(t, small()))
			if err != nil {
				t.Fatal(err)
			}
			p := &parts{raws, meta}
			for i := range p.raws {
				p.raws[i].Bytes = slices.Clone(p.raws[i].Bytes)
			}
			tt.edit(t, p)
			var b bytes.Buffer
			if err := safetensors.WriteRaw(&b, p.raws, p.meta); err != nil {
				t.Fatal(err)
			}
			if _, err := static.Parse(b.Bytes()); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	for name, b := range map[string][]byte{"empty": nil, "cut off": file(t, small())[:200]} {
		if _, err := static.Parse(b); !errors.Is(err, safetensors.ErrTruncated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever parses can be used.
func FuzzParse(f *testing.F) {
	f.Add(file(f, small()), "pay the rent")
	f.Add(file(f, many(5, 3)), strings.Repeat("w1 ", 9))
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		e, err := static.Parse(b)
		if err != nil {
			return
		}
		v := encode(t, e, text)
		if n := dot(v, v); n != 0 && math.Abs(n-1) > 1e-3 {
			t.Fatalf("squared length %v", n)
		}
	})
}
