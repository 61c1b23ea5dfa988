// Command serve measures verdicts over HTTP: it starts the service, sends requests
// at a fixed rate from this second process, and prints how long the answers took.
//
//	go build -o bin/dreamguard ./cmd/dreamguard
//	go run ./bench/serve -artifact runs/demo/artifact                  2,000 requests/s for 60 s
//	go run ./bench/serve -artifact runs/demo/artifact -find -seconds 10   the highest rate with p99 under 10 ms
//
// Requests are verdicts and commits in turn, of many sessions. The load is open: a
// request has the time at which it was due, so that a service that falls behind
// does not hide it. A request that finds all workers busy waits, and its wait counts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

type options struct {
	binary, artifact string
	rate, seconds    int
	sessions         int
	text             int
	find, log        bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/dreamguard", "program to measure")
	flag.StringVar(&o.artifact, "artifact", "", "artifact folder")
	flag.IntVar(&o.rate, "rate", 2000, "requests per second")
	flag.IntVar(&o.seconds, "seconds", 60, "how long")
	flag.IntVar(&o.sessions, "sessions", 200, "sessions")
	flag.IntVar(&o.text, "text", 500, "characters of a tool's result")
	flag.BoolVar(&o.find, "find", false, "find the highest rate with p99 under 10 ms, by bisection up to -rate")
	flag.BoolVar(&o.log, "log", false, "with a decision log, synced before each answer")
	flag.Parse()
	if o.artifact == "" || o.rate < 1 || o.seconds < 1 || o.sessions < 1 || o.text < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := measure(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/serve:", err)
		os.Exit(1)
	}
}

func measure(o options) error {
	dir, err := os.MkdirTemp("", "bench-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{"serve", "--artifact", o.artifact, "--listen", "127.0.0.1:0", "--rate", "0", "--on-hold", "allow"}
	if o.log {
		args = append(args, "--log", filepath.Join(dir, "decisions.jsonl"))
	}
	cmd := exec.Command(o.binary, args...)
	said := &sayings{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
	}()
	url := ""
	for begin := time.Now(); url == ""; time.Sleep(10 * time.Millisecond) {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said.String())
		if time.Since(begin) > 30*time.Second {
			return errors.New("the service does not start: " + said.String())
		}
	}
	l := &load{url: url, text: strings.Repeat("The invoice of March is due on the 14th. ", o.text/41+1)[:o.text]}
	l.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}, Timeout: 30 * time.Second}
	for range o.sessions {
		if err := l.start(); err != nil {
			return err
		}
	}
	if !o.find {
		r := l.run(o.rate, o.seconds)
		fmt.Println(r)
		return r.err
	}
	low, high := 0, o.rate
	for high-low > max(25, high/40) {
		mid := (low + high) / 2
		r := l.run(mid, o.seconds)
		fmt.Println(r)
		if r.err != nil {
			return r.err
		}
		if r.at(0.99) < 10*time.Millisecond && r.sent >= int(0.98*float64(mid*o.seconds)) {
			low = mid
		} else {
			high = mid
		}
	}
	fmt.Printf("highest rate with p99 under 10 ms: %d requests/s\n", low)
	return nil
}

// load is what is sent.
type load struct {
	url, text string
	client    *http.Client
	runs      []*run
}

// run is a session; requests of it follow one another.
type run struct {
	id     string
	open   float64 // the judgement that waits for its commit, 0 if none
	denied int
}

func (l *load) post(path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, l.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err = io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode >= 300 {
		return fmt.Errorf("%s: %s: %.300s", path, r.Status, b)
	}
	return json.Unmarshal(b, into)
}

func (l *load) start() error {
	var out struct{ Session string }
	err := l.post("/v1/sessions", map[string]any{"task": map[string]any{"instruction": "Tidy up the invoices of March and tell me what is due."}}, &out)
	l.runs = append(l.runs, &run{id: out.Session})
	return err
}

// step sends the next request of a session.
func (l *load) step(r *run) error {
	call := map[string]any{"tool": "read_file", "arguments": map[string]any{"path": "invoices/march.txt", "lines": 40}}
	if r.open == 0 {
		var out struct {
			Judgement float64
			Action    string
		}
		if err := l.post("/v1/sessions/"+r.id+"/judge", map[string]any{"call": call}, &out); err != nil {
			return err
		}
		if out.Action == "allow" {
			r.open = out.Judgement
		} else {
			r.denied++
		}
		return nil
	}
	n := r.open
	r.open = 0
	var out struct{ Step int }
	return l.post("/v1/sessions/"+r.id+"/commit", map[string]any{"judgement": n, "call": call, "result": map[string]any{"output": l.text}}, &out)
}

// result is what one run of the load has shown.
type result struct {
	rate, sent, denied int
	took               []time.Duration // from when they were due; sorted
	err                error
}

func (r *result) at(q float64) time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	return r.took[min(len(r.took)-1, int(q*float64(len(r.took))))]
}

func (r *result) String() string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%6d requests/s: %d sent, p50 %.2f ms, p90 %.2f, p99 %.2f, p99.9 %.2f, max %.1f; %d verdicts were not allow",
		r.rate, r.sent, ms(r.at(0.5)), ms(r.at(0.9)), ms(r.at(0.99)), ms(r.at(0.999)), ms(r.at(1)), r.denied)
}

// run sends rate requests a second.
func (l *load) run(rate, seconds int) *result {
	out := &result{rate: rate}
	total := rate * seconds
	due := make(chan time.Time, total)
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := make(chan *run, len(l.runs))
	for _, r := range l.runs {
		r.denied = 0
		free <- r
	}
	for range min(len(l.runs), 128) {
		wg.Go(func() {
			took := make([]time.Duration, 0, total/64)
			var failed error
			for at := range due {
				r := <-free
				if err := l.step(r); err != nil && failed == nil {
					failed = err
				}
				took = append(took, time.Since(at))
				free <- r
			}
			mu.Lock()
			defer mu.Unlock()
			out.took = append(out.took, took...)
			out.err = errors.Join(out.err, failed)
		})
	}
	begin := time.Now()
	for n := range total {
		at := begin.Add(time.Duration(n) * time.Second / time.Duration(rate))
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		due <- at
		if time.Since(at) > 5*time.Second {
			break // it cannot be held
		}
	}
	close(due)
	wg.Wait()
	out.sent = len(out.took)
	slices.Sort(out.took)
	for _, r := range l.runs {
		out.denied += r.denied
	}
	return out
}

// sayings keeps what the service prints.
type sayings struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sayings) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
