package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard"
)

// EvaluateProtocol measures an artifact that was trained elsewhere on the test
// sets of a protocol. Which goals and tasks are test sets follows from the
// configuration in the artifact's manifest, so that nothing it was trained on is
// tested on. The sets are made in a temporary run folder under o.Out.
func EvaluateProtocol(ctx context.Context, o TraceOptions, protocol, dataDir string, final bool, looks string) (eval.Report, error) {
	sets, vectors := scratch{parent: o.Out, pattern: "sets-"}, scratch{parent: o.Out, pattern: "vectors-"}
	defer sets.remove()
	defer vectors.remove()
	m, ahead, done, err := openArtifact(ctx, o.Artifact, o.Calibration, o.Encoder, &vectors, o.Progress)
	if err != nil {
		return eval.Report{}, err
	}
	defer done()
	var cfg configs.Config
	if err := json.Unmarshal(m.Manifest().Config, &cfg); err != nil || cfg.Name == "" {
		return eval.Report{}, fmt.Errorf("%s: its manifest does not carry the configuration it was trained with: measure it with --traces", o.Artifact)
	}
	if o.Encoder.Location != "" {
		if cfg.Encoder, err = located(m.Manifest(), o.Encoder); err != nil {
			return eval.Report{}, err
		}
	}
	if cfg.Data.Protocol != protocol {
		return eval.Report{}, fmt.Errorf("%s was trained under protocol %s: its test sets under %s could overlap with its training runs", o.Artifact, cfg.Data.Protocol, protocol)
	}
	if _, err := sourceFiles(dataDir, protocol); err != nil {
		return eval.Report{}, err
	}
	dir, err := sets.make()
	if err != nil {
		return eval.Report{}, err
	}
	run, err := Open(dir, cfg, Options{DataDir: dataDir, Progress: o.Progress, Version: o.Version})
	if err != nil {
		return eval.Report{}, err
	}
	if err := run.Data(ctx); err != nil {
		return eval.Report{}, err
	}
	for name, want := range m.Manifest().Data {
		file := filepath.Join("data", name+".jsonl.gz")
		if have := run.ledger.Stages["data"].Outputs[file]; have != want.Digest {
			return eval.Report{}, fmt.Errorf("the %s set made from %s is not the one that %s was trained with: its test sets could hold runs that it was trained on; use the data and the release of its training, or --traces", name, dataDir, o.Artifact)
		}
	}
	if final {
		if err := appendLook(looks, newLook(time.Now(), cfg.Name, m)); err != nil {
			return eval.Report{}, err
		}
	}
	report := eval.Report{Protocol: protocol, Config: cfg.Name, Seed: cfg.Seed, Tool: o.Version}
	describe(&report, m)
	err = run.eachTestSet(final || cfg.Eval.LockedSmoke, func(name, file string) error {
		return run.measureFile(ctx, m, ahead, &report, name, file)
	}, func(row eval.SetResult) { report.Sets = append(report.Sets, row) })
	if err != nil {
		return eval.Report{}, err
	}
	return report, report.Save(o.Out)
}

// measureFile scores a set of the folder and adds its rows.
func (r *Run) measureFile(ctx context.Context, m *guard.Model, ahead *ahead, report *eval.Report, name, file string) error {
	ts, err := r.Set(file)
	if err != nil {
		return err
	}
	traces, err := r.scoreAll(ctx, m, ahead, name, ts)
	if err != nil {
		return err
	}
	r.measure(report, name, traces)
	return nil
}
