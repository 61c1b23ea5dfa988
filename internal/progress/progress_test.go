package progress

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that tests move by hand.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func plain(w *bytes.Buffer) (*Reporter, *clock) {
	r := New(w, false)
	c := &clock{time.Unix(0, 0)}
	r.now = c.now
	return r, c
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	r, c := plain(&out)
	task := r.Start("embed", 10)
	for range 10 {
		c.t = c.t.Add(2 * time.Second)
		task.Add(1)
	}
	task.Done()
	task.Done()
	task.Add(1)
	want := "embed: 3/10, 6s, 0.5/s, 14s left\nembed: 6/10, 12s, 0.5/s, 8s left\nembed: 9/10, 18s, 0.5/s, 2s left\nembed: done, 10/10 in 20s, 0.5/s\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

func TestUnfinishedAndUnknown(t *testing.T) {
	var out bytes.Buffer
	r, c := plain(&out)
	short := r.Start("train", 10)
	short.Add(4)
	c.t = c.t.Add(1234 * time.Millisecond)
	short.Done()
	open := r.Start("read", 0)
	open.Add(7)
	open.Done()
	want := "train: 4/10 in 1.2s, 3.2/s\nread: done, 7 in 0s\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

// The outcome decides the word, not the count.
func TestOutcome(t *testing.T) {
	var out bytes.Buffer
	r, _ := plain(&out)
	for _, tt := range []struct {
		n    int
		err  error
		want string
	}{
		{10, nil, "embed: done, 10/10 in 0s\n"},
		{9, nil, "embed: done, 9 in 0s\n"},
		{11, nil, "embed: done, 11/10 in 0s\n"},
		{9, errors.New("x"), "embed: stopped, 9/10 in 0s\n"},
		{10, errors.New("x"), "embed: stopped, 10/10 in 0s\n"},
	} {
		out.Reset()
		task := r.Start("embed", 10)
		task.Add(tt.n)
		task.End(tt.err)
		task.Done()
		if out.String() != tt.want {
			t.Errorf("wrote %q, want %q", out.String(), tt.want)
		}
	}
	var none *Task
	none.End(nil)
}

// The rate and the time left read well from slow to fast.
func TestRateAndTimeLeft(t *testing.T) {
	var out bytes.Buffer
	r, c := plain(&out)
	for _, tt := range []struct {
		total, n int
		after    time.Duration
		want     string
	}{
		{0, 70, 7 * time.Second, "x: 70, 7s, 10/s\n"},
		{1_000_000, 400_000, 20 * time.Second, "x: 400000/1000000, 20s, 20000/s, 30s left\n"},
		{100, 1, time.Minute, "x: 1/100, 1m0s, 1.0/min, 1h39m0s left\n"},
		{10, 12, time.Minute, "x: 12/10, 1m0s, 0.2/s\n"}, // more than announced
		{1001, 1000, 6 * time.Second, "x: 1000/1001, 6s, 167/s, 1s left\n"},
		{10, 0, time.Minute, "x: 0/10, 1m0s\n"},
	} {
		out.Reset()
		task := r.Start("x", tt.total)
		c.t = c.t.Add(tt.after)
		task.Add(tt.n)
		if out.String() != tt.want {
			t.Errorf("wrote %q, want %q", out.String(), tt.want)
		}
	}
}

func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	var none *Reporter
	for _, r := range []*Reporter{New(&out, true), New(nil, false), none} {
		task := r.Start("x", 3)
		task.Add(3)
		task.Done()
	}
	if out.Len() != 0 {
		t.Errorf("a quiet reporter wrote %q", out.String())
	}
}

func TestBars(t *testing.T) {
	var out bytes.Buffer
	r, _ := plain(&out)
	r.bars = true
	first, second := r.Start("first", 100), r.Start("second", 100)
	first.Add(50)
	second.Add(100)
	second.Done()
	first.Add(70) // more than announced
	first.Done()
	third := r.Start("third", 0)
	third.Add(1)
	third.Done()
	for _, want := range []string{"second: done, 100/100", "first: done, 120/100", "third: done, 1 in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q in it", out.String(), want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	for _, bars := range []bool{false, true} {
		var out bytes.Buffer
		r, _ := plain(&out)
		r.bars = bars
		task := r.Start("work", 800)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				other := r.Start("other", 1)
				for range 100 {
					task.Add(1)
				}
				other.Add(1)
				other.Done()
			})
		}
		wg.Wait()
		task.Done()
		if !strings.Contains(out.String(), "work: done, 800/800") || strings.Count(out.String(), "other: done, 1/1") != 8 {
			t.Errorf("bars %v: wrote %q", bars, out.String())
		}
	}
}
