package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

// kind is what a path holds.
type kind string

const (
	kindTrajectories kind = "trajectories"
	kindCache        kind = "cache"
	kindCheckpoint   kind = "checkpoint"
	kindWeights      kind = "weights file"
	kindArtifact     kind = "artifact"
	kindRun          kind = "run"
)

// String names one such thing in a sentence.
func (k kind) String() string {
	switch k {
	case kindTrajectories:
		return "a file of trajectories"
	case kindArtifact:
		return "an artifact"
	case kindRun:
		return "a run folder"
	}
	return "a " + string(k)
}

func (a *app) inspectCommand() *cobra.Command {
	var (
		asJSON bool
		show   string
	)
	cmd := &cobra.Command{
		Use:   "inspect PATH...",
		Short: "Show what a file or folder holds, without changing it",
		Long: `Inspect shows trajectories (counts, labels, lengths, leaks and duplicates found),
caches of text vectors, checkpoints, files of weights, artifacts, files of static encoders
and run folders. Several files of trajectories are also compared with each other, which
is how a leak between splits shows. A folder of none of these kinds stands for the files in it:
its trajectories, or else its weights.

What is damaged is shown as far as it can be, and the exit code is then 1.`,
		Example: `  dreamguard inspect runs/demo/data/train.jsonl.gz
  dreamguard inspect runs/demo/data/train.jsonl.gz --show 3
  dreamguard inspect runs/demo/data/*.jsonl.gz
  dreamguard inspect runs/demo/artifact --json
  dreamguard inspect default                        # the artifact in the program`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			paths, err := expand(paths)
			if err != nil {
				return err
			}
			k, err := commonKind(paths)
			if err != nil {
				return err
			}
			if show != "" && k != kindTrajectories {
				return usagef("--show is for trajectories: %s is %s", paths[0], k)
			}
			if k == kindTrajectories {
				return a.inspectTrajectories(cmd.Context(), paths, show, asJSON)
			}
			for _, path := range paths {
				if err := a.inspectOne(k, path, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&show, "show", "", "print one trajectory readably: its id, or its number from 0")
	return cmd
}

func (a *app) inspectOne(k kind, path string, asJSON bool) error {
	switch k {
	case kindCache:
		return a.inspectCache(path, asJSON)
	case kindCheckpoint:
		return a.inspectCheckpoint(path, asJSON)
	case kindWeights:
		return a.inspectWeights(path, asJSON)
	case kindArtifact:
		return a.inspectArtifact(path, asJSON)
	}
	return a.inspectRun(path, asJSON)
}

// trajectoryEnds are the ends of the names of trajectory files.
var trajectoryEnds = []string{".jsonl", ".jsonl.gz", ".parquet"}

func isTrajectories(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(trajectoryEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// expand replaces a folder that is none of ours by the trajectory files in it, or
// else by its weights.
func expand(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() && path != pipeline.BuiltIn && folderKind(path) == "" {
			entries, err := os.ReadDir(path)
			if err != nil {
				return nil, err
			}
			files = nil
			var weights []string
			for _, e := range entries {
				switch name := filepath.Join(path, e.Name()); {
				case e.Name() == "metrics.jsonl": // of a training, beside its weights
				case isTrajectories(name):
					files = append(files, name)
				case strings.HasSuffix(strings.ToLower(name), ".safetensors"):
					weights = append(weights, name)
				}
			}
			if files == nil {
				files = weights
			}
			if files == nil {
				return nil, usagef("%s: not a folder of this program: it holds no cache.json, manifest.json, config.yaml, checkpoint, weights or trajectories", path)
			}
		}
		out = append(out, files...)
	}
	return out, nil
}

// commonKind returns the kind of the paths, which must be the same for all.
func commonKind(paths []string) (kind, error) {
	var first kind
	for i, path := range paths {
		k, err := kindOf(path)
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = k
		}
		if k != first {
			return "", usagef("%s is %s, %s is %s: inspect them one at a time", paths[0], first, path, k)
		}
	}
	return first, nil
}

// kindOf tells by the names inside a folder, and by the name of a file.
func kindOf(path string) (kind, error) {
	if path == pipeline.BuiltIn {
		return kindArtifact, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	name := strings.ToLower(filepath.Base(path))
	switch {
	case info.IsDir():
		return folderKind(path), nil
	case strings.HasSuffix(name, ".safetensors") && strings.HasPrefix(name, "step-"):
		return kindCheckpoint, nil
	case strings.HasSuffix(name, ".safetensors"):
		return kindWeights, nil
	case strings.HasSuffix(name, ".tar"):
		return kindArtifact, nil
	case isTrajectories(name):
		return kindTrajectories, nil
	}
	return "", usagef("%s: not a file of this program: want .jsonl, .jsonl.gz, .parquet, .safetensors or .tar (other formats of trajectories: dreamguard import)", path)
}

// folderKind returns the kind of a folder, "" for one that is none of ours.
func folderKind(dir string) kind {
	for _, mark := range []struct {
		file string
		kind kind
	}{{"cache.json", kindCache}, {artifact.ManifestFile, kindArtifact}, {"stages.json", kindRun}, {"config.yaml", kindRun}, {artifact.ModelFile, kindWeights}} {
		if _, err := os.Stat(filepath.Join(dir, mark.file)); err == nil {
			return mark.kind
		}
	}
	if newest, err := newestCheckpoint(dir); err == nil && newest != "" {
		return kindCheckpoint
	}
	return ""
}

// newestCheckpoint returns the checkpoint file of a folder that was written
// last, or "".
func newestCheckpoint(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var newest fs.FileInfo
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "step-") || !strings.HasSuffix(e.Name(), ".safetensors") {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced since it was listed
		}
		if err != nil {
			return "", err
		}
		if newest == nil || !info.ModTime().Before(newest.ModTime()) {
			newest = info
		}
	}
	if newest == nil {
		return "", nil
	}
	return filepath.Join(dir, newest.Name()), nil
}

func (a *app) inspectCache(dir string, asJSON bool) error {
	info, err := cache.Inspect(dir)
	if err != nil {
		return err
	}
	var damaged []string
	for _, s := range info.Segments {
		if s.Problem != "" {
			damaged = append(damaged, s.Name)
		}
	}
	if err := a.printCache(dir, info, asJSON); err != nil || damaged == nil {
		return err
	}
	return fmt.Errorf("%s: %d of %d segments cannot be used (%s): delete them, and embed makes their vectors again", dir, len(damaged), len(info.Segments), strings.Join(damaged, ", "))
}

func (a *app) printCache(dir string, info cache.Info, asJSON bool) error {
	if asJSON {
		return a.printJSON(info)
	}
	t := a.table()
	t.row("cache", dir)
	t.row("encoder", info.Encoder.String())
	t.row("texts", fmt.Sprint(info.Texts))
	t.row("vectors", fmt.Sprint(info.Vectors))
	t.row("segments", fmt.Sprint(len(info.Segments)))
	t.row("size", bytesText(info.Bytes))
	for _, s := range info.Segments {
		if s.Problem != "" {
			t.row("problem", s.Problem)
		}
	}
	return t.flush()
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
