package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// StageRecord says how a stage went. Digests are sha256 in hexadecimal.
type StageRecord struct {
	Inputs   string            `json:"inputs"`            // of the settings and files the stage depends on
	Settings string            `json:"settings"`          // of the settings alone
	Outputs  map[string]string `json:"outputs"`           // path in the run folder -> digest; for segments of vectors, whose names carry a checksum, the size
	Seconds  float64           `json:"seconds"`           // wall time
	PeakMiB  float64           `json:"peak_mib"`          // largest resident memory of the process up to the stage's end
	Finished time.Time         `json:"finished"`          // UTC
	Counts   map[string]int    `json:"counts,omitempty"`  // what the stage handled
	Encoder  *embed.ID         `json:"encoder,omitempty"` // of embed: whose vectors they are
}

// ledger is stages.json.
type ledger struct {
	path   string
	Stages map[string]*StageRecord `json:"stages"`
}

// ledgerFile is where the ledger lies in a run folder; maxLedger bounds it in bytes.
const (
	ledgerFile = "stages.json"
	maxLedger  = 16 << 20
)

func openLedger(path string) (*ledger, error) {
	l := &ledger{path: path, Stages: map[string]*StageRecord{}}
	b, err := boundedfile.Read(path, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%s: %w: delete it to run every stage again", path, err)
	}
	if l.Stages == nil {
		return nil, fmt.Errorf("%s: stages is null: delete the file to run every stage again", path)
	}
	for name, s := range l.Stages {
		if s == nil {
			return nil, fmt.Errorf("%s: stage %q is null: delete the file to run every stage again", path, name)
		}
	}
	return l, nil
}

// Record returns what is known of a stage, or nil.
func (r *Run) Record(stage string) *StageRecord { return r.ledger.Stages[stage] }

// stage runs f unless the stage is up to date: its inputs have the digest of the
// last time and its outputs are as it left them. f returns the paths it wrote,
// relative to the run folder.
func (r *Run) stage(ctx context.Context, name string, in *inputs, f func(context.Context, *StageRecord) ([]string, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	unlock, err := r.lock()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unlock()
	digest, err := in.sum()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if old := r.ledger.Stages[name]; old != nil && old.Inputs == digest && r.intact(old.Outputs) {
		r.opts.Log.Info("up to date", "stage", name)
		return nil
	}
	start := time.Now()
	rec := &StageRecord{Inputs: digest, Outputs: map[string]string{}, Counts: map[string]int{}}
	if rec.Settings, err = (&inputs{settings: in.settings}).sum(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out, err := f(ctx, rec)
	if err != nil {
		if strings.HasPrefix(err.Error(), name+": ") { // the package of that name says so too
			return err
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range out {
		if rec.Outputs[p], err = outputDigest(r.path(p)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	rec.Seconds = time.Since(start).Seconds()
	rec.PeakMiB = peakMiB()
	rec.Finished = time.Now().UTC().Truncate(time.Second)
	r.ledger.Stages[name] = rec
	return r.ledger.save()
}

func (l *ledger) save() error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(l.path, append(b, '\n'))
}

// reseal takes over changed outputs of a stage.
func (r *Run) reseal(stage string) error {
	rec := r.ledger.Stages[stage]
	for p := range rec.Outputs {
		d, err := outputDigest(r.path(p))
		if err != nil {
			return err
		}
		rec.Outputs[p] = d
	}
	return r.ledger.save()
}

// claimFolder takes the lock of a folder of results. Where locks are not to be had,
// unlock is nil: nothing can be told apart from work in progress.
func claimFolder(dir, work string) (unlock func(), err error) {
	unlock, err = filelock.Lock(filepath.Join(dir, ".lock"), filelock.TryExclusive)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("%s: another process is at work %s: wait for it, or choose another --out", dir, work)
	}
	return unlock, err
}

// lock keeps a second process out of the folder while a stage writes to it, and
// removes what a killed one left half-written. The vectors are left alone: several
// processes may be at work on them, and their cache cleans up itself.
// Within Until it is held over all stages. The ledger is read again under it,
// since another process may have written meanwhile.
func (r *Run) lock() (func(), error) {
	if r.held {
		return func() {}, nil
	}
	unlock, err := claimFolder(r.Dir, "in this run folder")
	if err != nil {
		return nil, err
	}
	if unlock == nil { // what a kill left behind stays
		return func() {}, nil
	}
	fail := func(err error) (func(), error) {
		unlock()
		return nil, err
	}
	for _, dir := range []string{"", "data", "train", "artifact", "eval", "final"} {
		if err := atomicfile.Clean(r.path(dir)); err != nil {
			return fail(err)
		}
	}
	if r.ledger, err = openLedger(r.ledger.path); err != nil {
		return fail(err)
	}
	r.held = true
	return func() { r.held = false; unlock() }, nil
}

func (r *Run) intact(outputs map[string]string) bool { return r.damaged(outputs) == "" }

// damaged returns the first output that is missing or not what was written.
func (r *Run) damaged(outputs map[string]string) string {
	for _, p := range slices.Sorted(maps.Keys(outputs)) {
		if got, err := outputDigest(r.path(p)); err != nil || got != outputs[p] {
			return p
		}
	}
	return ""
}

// needs reports whether the stages up to the named one have been done and still
// fit together: each one's outputs are there, and were made from what the stages
// before it last wrote. The error names the command to run first.
func (r *Run) needs(stage string) error {
	for _, name := range Stages {
		rec := r.ledger.Stages[name]
		first := fmt.Sprintf("run `dreamguard %s --run %s` first, or `dreamguard run --out %s` with its configuration", name, r.Dir, r.Dir)
		if name == "data" {
			first = fmt.Sprintf("run `dreamguard run --out %s --until data` with its configuration first", r.Dir)
		}
		if rec == nil {
			return fmt.Errorf("stage %s has not been run in %s: %s", name, r.Dir, first)
		}
		if missing := r.damaged(rec.Outputs); missing != "" {
			return fmt.Errorf("%s is missing or not what stage %s wrote: %s", r.path(missing), name, first)
		}
		if in := r.inputs(name); in != nil {
			if now, err := in.sum(); err != nil {
				return err
			} else if now != rec.Inputs {
				return fmt.Errorf("stage %s in %s is out of date: what it was made from has changed since: %s", name, r.Dir, first)
			}
		}
		if name == stage {
			break
		}
	}
	return nil
}

// outputsOf returns the digests of what a stage wrote, as inputs of another.
func (r *Run) outputsOf(stages ...string) map[string]string {
	all := map[string]string{}
	for _, s := range stages {
		if rec := r.ledger.Stages[s]; rec != nil {
			maps.Copy(all, rec.Outputs)
		}
	}
	return all
}

// outputDigest tells whether an output is as a stage left it. Segments of vectors
// can be many gigabytes, and opening the cache checks each against its name.
func outputDigest(path string) (string, error) {
	if !isSegment(path) {
		return fileDigest(path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes", info.Size()), nil
}

func fileDigest(path string) (string, error) {
	f, err := boundedfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// firstDifference names the first line in which two texts differ.
func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d of its config.yaml is %q, now it would be %q", i+1, strings.TrimSpace(a[i]), strings.TrimSpace(b[i]))
		}
	}
	return "one has more lines than the other"
}
