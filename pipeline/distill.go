package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/embed/tokenize"
	"github.com/dreamguard/dreamguard/embed/transformer"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// DistillOptions say what a static encoder is made from.
type DistillOptions struct {
	Teacher TeacherOptions
	Corpus  []string // files of trajectories: training sets only, or what is measured on the others means nothing
	Texts   int      // texts per data set that the teacher encodes, at most; 0 = nothing is fitted, the tokens' vectors are taken as they are
	Seed    uint64   // of their draw
	Fit     distill.Options
	Name    string // of the encoder; empty: made of the teacher's folder and the dimensions
	Source  string // the teacher as its publisher calls it; empty: the name of its folder
	Licence static.Licence

	Progress *progress.Reporter
}

// TeacherOptions open a sentence encoder.
type TeacherOptions struct {
	From    string // Hugging Face folder of a model with an uncased WordPiece tokenizer
	Backend string // go, xla:cpu or xla:cuda
	Cache   string // folder that keeps the teacher's vectors for the next time; empty: a temporary one
}

// Teacher is a sentence encoder that shows what it makes of single tokens.
// *transformer.Encoder is one.
type Teacher interface {
	embed.Encoder
	// TokenVectors returns the last hidden state of each sequence: one row per
	// token, flattened.
	TokenVectors(ctx context.Context, ids [][]int32) ([][]float32, error)
}

// ErrTokenizer is returned for a teacher whose tokenizer a static encoder does
// not have.
var ErrTokenizer = errors.New("the teacher's tokenizer is not an uncased WordPiece")

// Distill makes the table of a static encoder, and says how the fit went.
func Distill(ctx context.Context, o DistillOptions) (*static.Table, *distill.Result, error) {
	teacher, err := openTeacher(o.Teacher)
	if err != nil {
		return nil, nil, err
	}
	source := static.Source{Name: o.Source, Encoder: teacher.ID().Digest}
	if source.Tokenizer, err = fileDigest(filepath.Join(o.Teacher.From, "tokenizer.json")); err != nil {
		return nil, nil, err
	}
	if source.Weights, err = weightsDigest(o.Teacher.From); err != nil {
		return nil, nil, err
	}
	if source.Name == "" {
		dir, err := filepath.Abs(o.Teacher.From)
		if err != nil {
			return nil, nil, err
		}
		source.Name = filepath.Base(dir)
	}
	return distillFrom(ctx, teacher, teacher.Tokenizer(), teacher.Options().MaxTokens, source, o)
}

// openTeacher opens a sentence encoder as its folder describes it, under the name
// that its vectors are kept under: a folder can be renamed, and the digest covers
// what is in it.
func openTeacher(o TeacherOptions) (*transformer.Encoder, error) {
	opts := transformer.Options{Backend: o.Backend}
	if o.Cache != "" {
		id, err := cache.Identity(o.Cache)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		opts.Name = id.Name // "" for none: that of the folder
	}
	return transformer.Open(o.From, opts)
}

// distillFrom distils a teacher with the given tokenizer and window, its length
// in tokens with the special ones. Only texts that fit into it are fitted to:
// what the teacher makes of longer ones is a mean over windows already.
func distillFrom(ctx context.Context, teacher Teacher, words *tokenize.Tokenizer, window int, source static.Source, o DistillOptions) (*static.Table, *distill.Result, error) {
	tokens := make([]string, words.Size())
	for id := range tokens {
		if tokens[id] = words.Token(int32(id)); tokens[id] == "" {
			return nil, nil, fmt.Errorf("%w: id %d has no token", ErrTokenizer, id)
		}
	}
	own, err := tokenize.FromVocabulary(tokens, true)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTokenizer, err)
	}
	corpus, err := readCorpus(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := corpus.count(own, words); err != nil {
		return nil, nil, err
	}
	fitted := corpus.draw(o.Texts, window-len(words.AppendWithSpecial(nil, "")), o.Seed)
	if len(fitted) == 0 && o.Texts > 0 {
		return nil, nil, errors.New("the corpus has no text that fits into the teacher's window")
	}
	in := distill.Input{Counts: corpus.counts}
	h := sha256.New()
	texts := make([]string, len(fitted))
	for i, k := range fitted {
		texts[i] = corpus.texts[k]
		in.Texts = append(in.Texts, corpus.ids[k])
		sum := sha256.Sum256([]byte(texts[i]))
		h.Write(sum[:])
	}
	corpus.about.Fitted, corpus.about.Digest = len(fitted), hex.EncodeToString(h.Sum(nil))

	encoder, done, err := kept(ctx, teacher, o.Teacher.Cache, texts, o.Progress)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	in.Teacher = make([]float32, len(texts)*teacher.ID().Dims)
	if err := encoder.Encode(ctx, texts, in.Teacher); err != nil {
		return nil, nil, err
	}
	if in.Tokens, err = tokenVectors(ctx, teacher, words, o.Progress); err != nil {
		return nil, nil, err
	}
	task := o.Progress.Start("fit", 0)
	res, err := distill.Fit(ctx, in, o.Fit)
	task.End(err)
	if err != nil {
		return nil, nil, err
	}
	name := o.Name
	if name == "" {
		name = fmt.Sprintf("%s-static-%d", filepath.Base(source.Name), o.Fit.Dims)
	}
	return &static.Table{
		Manifest: static.Manifest{
			Name: name, Dims: o.Fit.Dims, Tokens: len(tokens), Source: source,
			Recipe:  static.Recipe{Version: distill.Version, SIF: o.Fit.SIF, Ridge: o.Fit.Ridge, Tokens: o.Fit.Tokens, Seed: o.Seed},
			Corpus:  corpus.about,
			Licence: o.Licence,
		},
		Tokens: tokens, Rows: res.Rows, Scale: res.Scale,
	}, res, nil
}

// corpus is the distinct texts of some files of trajectories.
type corpus struct {
	texts  []string
	sets   []string  // data set in which the text of the same index was first met
	ids    [][]int32 // tokens
	counts []int64   // of each token over all texts
	about  static.Corpus
}

func readCorpus(ctx context.Context, o DistillOptions) (*corpus, error) {
	c := &corpus{}
	seen := map[string]bool{}
	task := o.Progress.Start("read", 0)
	defer task.Done()
	for _, path := range o.Corpus {
		digest, err := fileDigest(path)
		if err != nil {
			return nil, err
		}
		about := static.File{Name: filepath.Base(path), Digest: digest}
		err = eachRun(ctx, path, func(r distill.Run, _ string) {
			about.Runs++
			task.Add(1)
			for _, text := range r.Texts {
				if !seen[text] {
					seen[text] = true
					c.texts, c.sets = append(c.texts, text), append(c.sets, r.Set)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		c.about.Files = append(c.about.Files, about)
	}
	c.about.Texts = len(c.texts)
	return c, nil
}

// count cuts the texts into tokens and counts those. It checks that the
// vocabulary alone, which is all that the static encoder will have, cuts every
// text as the teacher's tokenizer does.
func (c *corpus) count(own, teacher *tokenize.Tokenizer) error {
	c.counts = make([]int64, own.Size())
	var ids []int32
	for _, text := range c.texts {
		ids = teacher.Append(ids[:0], text)
		mine := own.Append(make([]int32, 0, len(ids)), text)
		if !slices.Equal(mine, ids) {
			return fmt.Errorf("%w: it cuts %.60q into other tokens than its vocabulary does", ErrTokenizer, text)
		}
		c.ids = append(c.ids, mine)
		for _, id := range mine {
			c.counts[id]++
		}
		c.about.Tokens += int64(len(mine))
	}
	return nil
}

// draw returns the indices of at most n texts of every data set that have at most
// longest tokens, in ascending order.
func (c *corpus) draw(n, longest int, seed uint64) []int {
	bySet := map[string][]int{}
	for i, ids := range c.ids {
		if len(ids) > 0 && len(ids) <= longest {
			bySet[c.sets[i]] = append(bySet[c.sets[i]], i)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0xbb67ae8584caa73b))
	var out []int
	for _, set := range slices.Sorted(maps.Keys(bySet)) {
		list := bySet[set]
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		out = append(out, list[:min(n, len(list))]...)
	}
	slices.Sort(out)
	return out
}

// tokenVectors returns what the teacher makes of each token alone between its
// special tokens: the row of the token.
func tokenVectors(ctx context.Context, teacher Teacher, words *tokenize.Tokenizer, p *progress.Reporter) ([]float32, error) {
	// Where the token stands among the special ones shows with any text of one token.
	const probe = "a"
	whole, one := words.AppendWithSpecial(nil, probe), words.Append(nil, probe)
	at := -1
	if len(one) == 1 {
		at = slices.Index(whole, one[0])
	}
	if at < 0 {
		return nil, fmt.Errorf("%w: %q is not one token", ErrTokenizer, probe)
	}
	size := words.Size()
	task := p.Start("tokens", size)
	defer task.Done()
	var out []float32
	const batch = 256
	for from := 0; from < size; from += batch {
		var ids [][]int32
		for id := from; id < min(from+batch, size); id++ {
			sequence := slices.Clone(whole)
			sequence[at] = int32(id)
			ids = append(ids, sequence)
		}
		states, err := teacher.TokenVectors(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			width := len(s) / len(whole)
			out = append(out, s[at*width:(at+1)*width]...)
		}
		task.Add(len(ids))
	}
	return out, nil
}

// weightsDigest returns the sha256 of the weights in a Hugging Face folder; of
// several files, that of their names and digests.
func weightsDigest(dir string) (string, error) {
	entries, err := os.ReadDir(dir) // sorted; a pattern would read the folder's name as one too
	if err != nil {
		return "", err
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".safetensors") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s: no *.safetensors in it: %w", dir, fs.ErrNotExist)
	}
	if len(files) == 1 {
		return fileDigest(files[0])
	}
	h := sha256.New()
	for _, f := range files {
		d, err := fileDigest(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s\n", d, filepath.Base(f))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
