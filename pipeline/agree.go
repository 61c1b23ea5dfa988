package pipeline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// AgreeOptions say on which texts two encoders are compared.
type AgreeOptions struct {
	Encoder embed.Encoder // the one to measure
	Teacher TeacherOptions
	Runs    []string // files of trajectories
	Without string   // file of ids to leave out, one per line; empty: none
	Pairs   int      // of each kind
	Seed    uint64   // of their draw

	Progress *progress.Reporter
}

// Agree measures how well the cosines of an encoder follow those of the teacher,
// on pairs of texts as the guard would encode them.
func Agree(ctx context.Context, o AgreeOptions) ([]distill.Agreement, error) {
	teacher, err := openTeacher(o.Teacher)
	if err != nil {
		return nil, err
	}
	return agreeWith(ctx, teacher, o)
}

func agreeWith(ctx context.Context, teacher embed.Encoder, o AgreeOptions) ([]distill.Agreement, error) {
	skip := map[string]bool{}
	if o.Without != "" {
		f, err := boundedfile.Open(o.Without)
		if err != nil {
			return nil, err
		}
		defer f.Close() // read only
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if id := strings.TrimSpace(lines.Text()); id != "" {
				skip[id] = true
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Without, err)
		}
	}
	var runs []distill.Run
	task := o.Progress.Start("read", 0)
	for _, path := range o.Runs {
		err := eachRun(ctx, path, func(r distill.Run, id string) {
			task.Add(1)
			if !skip[id] {
				runs = append(runs, r)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	task.Done()
	pairs := distill.DrawPairs(runs, o.Pairs, o.Seed)
	if len(pairs) == 0 {
		return nil, errors.New("the files hold no two texts to compare")
	}
	var texts []string
	for _, p := range pairs {
		texts = append(texts, p.A, p.B)
	}
	encoder, done, err := kept(ctx, teacher, o.Teacher.Cache, texts, o.Progress)
	if err != nil {
		return nil, err
	}
	defer done()
	return distill.Agree(ctx, pairs, o.Encoder, encoder)
}

// eachRun calls do with the texts of every run of a file, in the form in which
// the guard encodes them, and with its id.
func eachRun(ctx context.Context, path string, do func(r distill.Run, id string)) (err error) {
	file, err := store.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for t, err := range file.All() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		clean.Apply(t) // a set of a run folder is clean already, other files are not
		r := distill.Run{Set: t.Dataset, Group: t.Group, Texts: []string{embed.TaskText(t.StartTask())}}
		for i := range t.Steps {
			r.Texts = append(r.Texts, embed.CallText(t.Call(i)), embed.ResultText(t.Result(i)))
		}
		r.Texts = slices.DeleteFunc(r.Texts, func(s string) bool { return s == "" })
		do(r, t.ID)
	}
	return nil
}

// kept returns enc with the vectors of texts computed and kept in dir, or in a
// temporary folder where dir is empty, so that what was interrupted goes on from
// there. done must be called in the end.
func kept(ctx context.Context, enc embed.Encoder, dir string, texts []string, p *progress.Reporter) (_ embed.Encoder, done func(), err error) {
	remove := func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dreamguard-teacher-"); err != nil {
			return nil, nil, err
		}
		remove = func() { os.RemoveAll(dir) }
	}
	c, err := cache.Open(dir, enc.ID())
	if err != nil {
		remove()
		return nil, nil, err
	}
	done = func() {
		c.Close() // read only by now
		remove()
	}
	seq := cache.Seq(slices.Values(texts))
	fresh, err := c.Count(ctx, seq, cache.Shard{})
	if err == nil {
		task, shown := p.Start("teacher", fresh), 0
		_, err = c.Fill(ctx, enc, seq, cache.Options{Workers: 1, Progress: func(n int) { task.Add(n - shown); shown = n }})
		task.Done()
	}
	var out embed.Encoder
	if err == nil {
		out, err = c.Encoder(enc)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return out, done, nil
}
