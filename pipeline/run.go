package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data/split"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/progress"
)

// Options are what does not change the results of a run.
type Options struct {
	DataDir  string             // real data, laid out as docs/reference/data.md says; not needed for the simulator
	Progress *progress.Reporter // nil shows nothing
	Log      *slog.Logger       // nil drops messages
	Version  string             // of the tool, written into the artifact
	Vectors  []string           // folders of caches whose vectors Embed takes over before it computes any
	Now      time.Time          // date of the certificate; zero means the clock
}

// Run is an open run folder.
type Run struct {
	Dir    string
	Config configs.Config

	opts   Options
	ledger *ledger
	held   bool          // this process holds the folder's lock
	enc    embed.Encoder // nil until it is needed: see encoder
}

// ErrOtherConfig is returned by Open for a folder that holds a run of another
// configuration name.
var ErrOtherConfig = errors.New("the run folder belongs to another configuration")

// ErrNoData is returned where a protocol needs real trajectories and no folder is
// named.
var ErrNoData = errors.New("needs real trajectories: name their folder with --data DIR (its layout is described in docs/reference/data.md)")

// sourceFiles lists the files of the protocol in a folder of real trajectories, none
// for the simulator. The error wraps [ErrNoData] where dir is no folder.
func sourceFiles(dir, protocol string) ([]string, error) {
	if protocol == "simulator" {
		return nil, nil
	}
	if dir == "" {
		return nil, fmt.Errorf("data: protocol %s %w", protocol, ErrNoData)
	}
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("data: %s is no folder: protocol %s %w", dir, protocol, ErrNoData)
	}
	files, err := split.Files(dir, protocol)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return files, nil
}

// ErrNoRun is returned for a file, and by Reopen for a folder that holds no run.
var ErrNoRun = errors.New("not a run folder")

// notFile refuses what cannot be a run folder.
func notFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: %w but a file", dir, ErrNoRun)
	}
	return nil
}

// Open makes the run folder dir for cfg, or opens it if it holds a run of a
// configuration of the same name. Changed settings are taken over: the stages
// that depend on them run again, the others do not.
func Open(dir string, cfg configs.Config, opts Options) (*Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	want, err := cfg.Marshal()
	if err != nil {
		return nil, err
	}
	if err := notFile(dir); err != nil {
		return nil, err
	}
	have, err := claim(dir, cfg, opts)
	if err != nil {
		return nil, err
	}
	r, err := reopen(dir, cfg, opts)
	if err != nil || string(have) == string(want) {
		return r, err
	}
	unlock, err := r.lock() // not under the feet of a process at work
	if err != nil {
		return nil, err
	}
	defer unlock()
	if have, err = claim(dir, cfg, opts); err != nil { // another process may have been first
		return nil, err
	}
	if have != nil {
		r.opts.Log.Info("settings changed", "folder", dir, "first", firstDifference(string(have), string(want)))
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, configFile), want); err != nil {
		return nil, err
	}
	return r, nil
}

// configFile holds the configuration of a run, in the form that Marshal gives it.
const configFile = "config.yaml"

// claim makes the folder for a new run and returns nil, or the configuration of the
// run that is in it. A run of another name, and a folder with things in it that the
// stages would write over, are refused.
func claim(dir string, cfg configs.Config, opts Options) ([]byte, error) {
	path := filepath.Join(dir, configFile)
	have, err := boundedfile.Read(path, maxLedger)
	if err == nil {
		old, err := configs.Parse(path, have)
		if err == nil && old.Name != cfg.Name {
			err = fmt.Errorf("%s: %w (%s, not %s): choose another --out, or delete the folder", dir, ErrOtherConfig, old.Name, cfg.Name)
		}
		return have, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range append(slices.Clone(Stages), "artifact", "final", ledgerFile) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, fmt.Errorf("%s: %w: it has no %s and holds %s, which a run would write over: choose another --out", dir, ErrNoRun, configFile, name)
		}
	}
	if _, err := sourceFiles(opts.DataDir, cfg.Data.Protocol); err != nil { // before the folder is claimed
		return nil, err
	}
	return nil, os.MkdirAll(dir, 0o777)
}

// Reopen opens a run folder with the configuration it was made with.
func Reopen(dir string, opts Options) (*Run, error) {
	if err := notFile(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, configFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: it has no config.yaml; make one with `dreamguard run --config PRESET --out %s`", dir, ErrNoRun, dir)
	}
	cfg, err := configs.Load(path)
	if err != nil {
		return nil, err
	}
	return reopen(dir, cfg, opts)
}

func reopen(dir string, cfg configs.Config, opts Options) (*Run, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	l, err := openLedger(filepath.Join(dir, ledgerFile))
	if err != nil {
		return nil, err
	}
	return &Run{Dir: filepath.Clean(dir), Config: cfg, opts: opts, ledger: l}, nil
}

// path returns a path inside the run folder.
func (r *Run) path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

// Stages lists the stages in order.
var Stages = []string{"data", "embed", "train", "export", "calibrate", "eval"}

// All runs every stage that is not up to date.
func (r *Run) All(ctx context.Context) error { return r.Until(ctx, Stages[len(Stages)-1]) }

// Until runs the stages up to and including the named one.
func (r *Run) Until(ctx context.Context, stage string) error {
	steps := map[string]func(context.Context) error{
		"data": r.Data, "embed": r.Embed, "train": r.Train, "export": r.Export, "calibrate": r.Calibrate, "eval": r.Evaluate,
	}
	if steps[stage] == nil {
		return fmt.Errorf("%q is not a stage", stage)
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, name := range Stages {
		if err := steps[name](ctx); err != nil {
			return err
		}
		if name == stage {
			break
		}
	}
	return nil
}

// Report reads what Evaluate wrote.
func (r *Run) Report() (eval.Report, error) { return r.ReportIn("eval") }

// ReportIn reads the report in a folder of the run: "eval", or "final" for what
// EvaluateFinal wrote.
func (r *Run) ReportIn(folder string) (eval.Report, error) {
	f, err := boundedfile.Open(r.path(folder, "report.json"))
	if err != nil {
		return eval.Report{}, err
	}
	defer f.Close()
	report, err := eval.Read(f)
	if err != nil {
		return eval.Report{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return report, nil
}
