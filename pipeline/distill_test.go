package pipeline

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/simulate"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/embed/tokenize"
)

// sumTeacher is a teacher that adds up one hashed vector per token, whatever
// stands around it.
type sumTeacher struct {
	*hash.Encoder
	words *tokenize.Tokenizer
	asked int
}

func (h *sumTeacher) token(ctx context.Context, id int32, dst []float32) error {
	return h.Encoder.Encode(ctx, []string{strings.TrimPrefix(h.words.Token(id), "##")}, dst)
}

func (h *sumTeacher) Encode(ctx context.Context, texts []string, dst []float32) error {
	dims := h.ID().Dims
	v := make([]float32, dims)
	for i, text := range texts {
		sum := make([]float64, dims)
		for _, id := range h.words.Append(nil, text) {
			if err := h.token(ctx, id, v); err != nil {
				return err
			}
			for k, x := range v {
				sum[k] += float64(x)
			}
		}
		var norm float64
		for _, x := range sum {
			norm += x * x
		}
		for k, x := range sum {
			dst[i*dims+k] = float32(x / math.Sqrt(norm))
		}
	}
	return nil
}

func (h *sumTeacher) TokenVectors(ctx context.Context, ids [][]int32) ([][]float32, error) {
	dims := h.ID().Dims
	out := make([][]float32, len(ids))
	for i, sequence := range ids {
		h.asked++
		if len(sequence) != 3 || h.words.Token(sequence[0]) != "[CLS]" || h.words.Token(sequence[2]) != "[SEP]" {
			return nil, errors.New("the token does not stand between its special tokens")
		}
		out[i] = make([]float32, dims*len(sequence))
		for k, id := range sequence {
			if err := h.token(ctx, id, out[i][k*dims:(k+1)*dims]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// testVocabulary has every ASCII character as a word and as a continuation, and the
// frequent words of the runs.
func testVocabulary(ts []*data.Trajectory) []string {
	tokens := []string{"[UNK]", "[CLS]", "[SEP]"}
	seen := map[string]bool{}
	for c := '!'; c < 127; c++ {
		if c < 'A' || c > 'Z' {
			tokens = append(tokens, string(c), "##"+string(c))
			seen[string(c)] = true
		}
	}
	for _, t := range ts {
		for i := range t.Steps {
			for _, word := range strings.FieldsFunc(strings.ToLower(t.Steps[i].Result), func(r rune) bool { return r < 'a' || r > 'z' }) {
				if !seen[word] && len(tokens) < 600 {
					seen[word] = true
					tokens = append(tokens, word)
				}
			}
		}
	}
	return tokens
}

func simulated(t *testing.T, part string, n int) (string, []*data.Trajectory) {
	t.Helper()
	var ts []*data.Trajectory
	for r := range simulate.Generate(simulate.Options{Seed: 5, Runs: n, Part: part}) {
		ts = append(ts, r)
	}
	path := filepath.Join(t.TempDir(), part+".jsonl.gz")
	if err := store.WriteAll(path, ts); err != nil {
		t.Fatal(err)
	}
	return path, ts
}

func TestDistill(t *testing.T) {
	ctx := context.Background()
	train, runs := simulated(t, simulate.PartTrain, 60)
	held, heldRuns := simulated(t, simulate.PartTest, 20)
	words, err := tokenize.FromVocabulary(testVocabulary(runs), true)
	if err != nil {
		t.Fatal(err)
	}
	teacher := &sumTeacher{hash.New(48), words, 0}
	o := DistillOptions{
		Teacher: TeacherOptions{Cache: t.TempDir()}, Corpus: []string{train}, Texts: 300, Seed: 1, Fit: distill.Defaults(32),
	}
	source := static.Source{Name: "ours/sum", Weights: "w", Tokenizer: "t", Encoder: teacher.ID().Digest}
	table, res, err := distillFrom(ctx, teacher, words, 64, source, o)
	if err != nil {
		t.Fatal(err)
	}
	m := table.Manifest
	if m.Name != "sum-static-32" || m.Tokens != words.Size() || m.Source != source || m.Recipe.SIF != o.Fit.SIF || m.Recipe.Version != distill.Version {
		t.Errorf("manifest %+v", m)
	}
	if c := m.Corpus; len(c.Files) != 1 || c.Files[0].Runs != 60 || c.Files[0].Name != filepath.Base(train) || c.Fitted != 300 || c.Texts <= 300 || c.Tokens == 0 || len(c.Digest) != 64 {
		t.Errorf("corpus %+v", c)
	}
	if teacher.asked != words.Size() || res.Corrected == 0 || res.Iterations == 0 {
		t.Errorf("%d tokens asked for, result %+v", teacher.asked, res)
	}
	file := func(x *static.Table) []byte {
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	again, _, err := distillFrom(ctx, teacher, words, 64, source, o)
	if err != nil || !bytes.Equal(file(table), file(again)) {
		t.Errorf("the same input, other bytes (%v)", err)
	}

	enc, err := static.Parse(file(table))
	if err != nil {
		t.Fatal(err)
	}
	a := AgreeOptions{Encoder: enc, Runs: []string{held}, Pairs: 100, Seed: 1}
	rows, err := agreeWith(ctx, teacher, a)
	if err != nil {
		t.Fatal(err)
	}
	// The teacher knows tokens and nothing else, and so does the table.
	if len(rows) != 3 || rows[0].Pairs != 200 || rows[0].Spearman < 0.9 {
		t.Errorf("agreement on held-out scenarios: %+v", rows)
	}

	// Leaving runs out changes the draw; leaving all out leaves nothing.
	var ids []string
	for _, r := range heldRuns {
		ids = append(ids, r.ID)
	}
	a.Without = filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(a.Without, []byte(strings.Join(ids[:10], "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if fewer, err := agreeWith(ctx, teacher, a); err != nil || cmp.Equal(rows, fewer) {
		t.Errorf("without ten runs: %+v, %v", fewer, err)
	}
	if err := os.WriteFile(a.Without, []byte(strings.Join(ids, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := agreeWith(ctx, teacher, a); err == nil {
		t.Error("no runs are left, and they agree")
	}
}

func TestDistillRefuses(t *testing.T) {
	ctx := context.Background()
	train, runs := simulated(t, simulate.PartTrain, 3)
	tokens := testVocabulary(runs)
	cased, err := tokenize.FromVocabulary(append(tokens, "A", "##A"), false)
	if err != nil {
		t.Fatal(err)
	}
	o := DistillOptions{Corpus: []string{train}, Texts: 10, Fit: distill.Defaults(8)}
	if _, _, err := distillFrom(ctx, &sumTeacher{hash.New(16), cased, 0}, cased, 64, static.Source{}, o); !errors.Is(err, ErrTokenizer) {
		t.Errorf("cased: %v", err)
	}
	words, err := tokenize.FromVocabulary(tokens, true)
	if err != nil {
		t.Fatal(err)
	}
	teacher := &sumTeacher{hash.New(16), words, 0}
	if _, _, err := distillFrom(ctx, teacher, words, 2, static.Source{}, o); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window without room for a token: %v", err)
	}
	o.Fit.Dims = 17
	if _, _, err := distillFrom(ctx, teacher, words, 64, static.Source{}, o); !errors.Is(err, distill.ErrInput) {
		t.Errorf("more dimensions than the teacher has: %v", err)
	}
	o.Corpus = []string{filepath.Join(t.TempDir(), "absent.jsonl")}
	if _, _, err := distillFrom(ctx, teacher, words, 64, static.Source{}, o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no corpus: %v", err)
	}
}

func TestWeightsDigest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model[1]") // a name, not a pattern
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := weightsDigest(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no weights: %v", err)
	}
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := weightsDigest(dir)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// sha256 of "abc": FIPS 180-2, appendix B.1.
	if one := write("model-1.safetensors", "abc"); one != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("one file: %s", one)
	}
	two := write("model-2.safetensors", "abc")
	if other := write("model-2.safetensors", "abd"); other == two {
		t.Error("the second file has no influence")
	}
}
