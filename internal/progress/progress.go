// Package progress tells a person how far a long task is, how fast it goes and
// how long it will take: a bar when the writer is a terminal, else a plain line
// every few seconds, which is what a log wants.
//
//	report := progress.New(os.Stderr, quiet)
//	task := report.Start("embed", len(texts))
//	defer task.Done()
//	for _, text := range texts {
//		...
//		task.Add(1)
//	}
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// interval between two plain lines of one task.
const interval = 5 * time.Second

// Reporter shows the tasks of one process. Its methods may be called from
// several goroutines. A nil Reporter shows nothing.
type Reporter struct {
	mu    sync.Mutex // guards w, and every field of every task
	w     io.Writer  // nil when quiet
	bars  bool
	drawn *Task // the task whose bar is on the screen
	now   func() time.Time
}

// New returns a reporter that writes to w, normally os.Stderr: standard output
// is for results. A quiet one, or one without a writer, writes nothing.
func New(w io.Writer, quiet bool) *Reporter {
	r := &Reporter{now: time.Now}
	if quiet || w == nil {
		return r
	}
	r.w, r.bars = w, os.Getenv("TERM") != "dumb" && IsTerminal(w)
	return r
}

// IsTerminal reports whether a person reads w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Task is something with a beginning and an end. A nil Task shows nothing.
type Task struct {
	r     *Reporter
	name  string
	total int // 0 = not known
	n     int
	begun time.Time
	last  time.Time // when a plain line was written last
	bar   *progressbar.ProgressBar
	done  bool
}

// Start begins a task of total units; total 0 means that it is not known. Only
// one task at a time has a bar: others that run meanwhile report their end.
func (r *Reporter) Start(name string, total int) *Task {
	if r == nil || r.w == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &Task{r: r, name: name, total: max(total, 0), begun: r.now()}
	t.last = t.begun
	if r.bars && r.drawn == nil {
		r.drawn = t
		limit := t.total
		if limit == 0 {
			limit = -1
		}
		t.bar = progressbar.NewOptions(limit,
			progressbar.OptionSetWriter(r.w),
			progressbar.OptionSetDescription(name),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30),
			// Otherwise a bar of unknown length redraws itself from a goroutine
			// that knows nothing of our lock and never ends.
			progressbar.OptionSetSpinnerChangeInterval(0),
		)
	}
	return t
}

// Add counts n more units.
func (t *Task) Add(n int) {
	if t == nil {
		return
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.done {
		return
	}
	t.n += n
	switch {
	case t.bar != nil:
		// The bar refuses to go past its end; a task may turn out longer than
		// announced.
		if t.total == 0 || t.n <= t.total {
			t.bar.Add(n) // a terminal that cannot be written to is no reason to stop
		}
	case !t.r.bars && t.r.now().Sub(t.last) >= interval:
		t.last = t.r.now()
		fmt.Fprintf(t.r.w, "%s: %s, %s%s%s\n", t.name, t.count(), rounded(t.elapsed()), t.rate(), t.left())
	}
}

// End ends the task with its outcome and writes a last line: that it is done, or
// for an error that it stopped, whatever the count: one that was announced may
// turn out too high. Calls of End and Done after the first do nothing.
func (t *Task) End(err error) {
	if err != nil {
		t.end("stopped, ")
		return
	}
	t.end("done, ")
}

// Done is [Task.End] for a caller who does not know the outcome, as in a defer:
// the last line says that the task is done only where the count does.
func (t *Task) Done() { t.end("") }

func (t *Task) end(outcome string) {
	if t == nil {
		return
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	if t.r.drawn != nil {
		t.r.drawn.bar.Clear() // whoever owns it: the line below takes its place
	}
	if t.r.drawn == t {
		t.r.drawn = nil
	}
	if outcome == "" && t.n >= t.total {
		outcome = "done, "
	}
	if outcome == "done, " && t.n < t.total {
		t.total = 0 // fewer than announced, and yet all
	}
	fmt.Fprintf(t.r.w, "%s: %s%s in %s%s\n", t.name, outcome, t.count(), rounded(t.elapsed()), t.rate())
}

func (t *Task) count() string {
	if t.total == 0 {
		return fmt.Sprint(t.n)
	}
	return fmt.Sprintf("%d/%d", t.n, t.total)
}

func (t *Task) elapsed() time.Duration { return t.r.now().Sub(t.begun) }

// rate is the mean number of units per second so far, as ", 12/s". A task of less
// than a second has none.
func (t *Task) rate() string {
	d := t.elapsed()
	if d < time.Second || t.n == 0 {
		return ""
	}
	r := float64(t.n) / d.Seconds()
	digits := 0
	if r < 10 {
		digits = 1
	}
	if r < 0.1 {
		return fmt.Sprintf(", %.1f/min", 60*r)
	}
	return fmt.Sprintf(", %.*f/s", digits, r)
}

// left is the time that the rest takes at the mean rate, as ", 3m20s left".
func (t *Task) left() string {
	if t.n == 0 || t.n >= t.total {
		return ""
	}
	d := time.Duration(float64(t.elapsed()) / float64(t.n) * float64(t.total-t.n))
	return fmt.Sprintf(", %s left", max(d.Round(time.Second), time.Second))
}

func rounded(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
