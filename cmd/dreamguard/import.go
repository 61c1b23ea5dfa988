package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
	"github.com/dreamguard/dreamguard/data/store"
	"github.com/dreamguard/dreamguard/internal/progress"
	"github.com/spf13/cobra"
)

// importResult is what import reports.
type importResult struct {
	Written *written       `json:"written"` // null without --out
	Files   []importedFile `json:"files"`
}

type importedFile struct {
	Path string `json:"path"`
	formats.Report
}

func (a *app) importCommand() *cobra.Command {
	var (
		format, out string
		asJSON      bool
	)
	var checkFormat func() error
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Turn logs of agents into one file of trajectories",
		Long: `Import reads logs of agents, finds out their format, and writes the runs in them as
trajectories. It reports what it read, left out and repaired, with reasons. It never
guesses a label. Without --out it only reports.

A run without an id of its own is named after its file; where several files have the
same name, their folders' names tell the runs apart.

Formats: ` + strings.Join(formatNames(), ", "),
		Example: `  dreamguard import logs/*.json --out runs.jsonl.gz
  dreamguard import session.jsonl --format claude-code --json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := checkFormat(); err != nil {
				return err
			}
			if slices.Contains(paths, "-") {
				return usagef("import: - is no file: standard input is not read, since ids and the report need a file's name; write it to a file first")
			}
			task := a.progress().Start("import", 0)
			im := importer{ctx: cmd.Context(), paths: paths, format: format, task: task, from: map[string]string{}, written: written{Out: out}}
			err := im.run(out)
			task.End(err)
			// Why nothing was left is in the report.
			if errors.Is(err, store.ErrEmpty) {
				err = fmt.Errorf("%s: %w", im.sources(), store.ErrEmpty)
			}
			if err != nil && !errors.Is(err, store.ErrEmpty) {
				return badName(err)
			}
			if printErr := a.printImport(&im, asJSON); printErr != nil {
				return printErr
			}
			return err
		},
	}
	f := cmd.Flags()
	checkFormat = formatFlag(cmd, &format, "format of all files; found out for each if left out")
	f.StringVar(&out, "out", "", "file to write: .jsonl, .jsonl.gz or .parquet")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// importer streams the runs of several files into one.
type importer struct {
	ctx     context.Context
	paths   []string
	format  string
	task    *progress.Task
	from    map[string]string // id -> the file it came from
	reports []importedFile
	written written
}

// run writes all runs to out, or only reads them if out is empty.
func (im *importer) run(out string) error {
	if out != "" {
		_, err := store.Write(out, im.all())
		return err
	}
	for _, err := range im.all() {
		if err != nil {
			return err
		}
	}
	if im.written.Runs == 0 {
		return store.ErrEmpty
	}
	return nil
}

// sources names the files that were read.
func (im *importer) sources() string {
	if len(im.paths) == 1 {
		return im.paths[0]
	}
	return fmt.Sprintf("%s and %d more", im.paths[0], len(im.paths)-1)
}

// errStop ends an import whose consumer wants no more.
var errStop = errors.New("stop")

func (im *importer) all() iter.Seq2[*data.Trajectory, error] {
	return func(yield func(*data.Trajectory, error) bool) {
		stems := formats.Stems(im.paths)
		for i, path := range im.paths {
			report, err := formats.ImportAs(path, stems[i], im.format, func(t *data.Trajectory) error {
				if err := im.ctx.Err(); err != nil {
					return err
				}
				if other, ok := im.from[t.ID]; ok {
					return fmt.Errorf("%s: id %.100q stands in %s already: ids must be unique", path, t.ID, other)
				}
				im.from[t.ID] = path
				im.written.count(t)
				im.task.Add(1)
				if !yield(t, nil) {
					return errStop
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return
			}
			if err != nil && !errors.Is(err, store.ErrEmpty) {
				yield(nil, err)
				return
			}
			im.reports = append(im.reports, importedFile{path, report})
		}
	}
}

func (a *app) printImport(im *importer, asJSON bool) error {
	if asJSON {
		r := importResult{Files: im.reports}
		if im.written.Out != "" && im.written.Runs > 0 {
			r.Written = &im.written
		}
		return a.printJSON(r)
	}
	for _, f := range im.reports {
		name := f.Format
		if name == "" {
			name = "no format"
		}
		if err := a.printf("%s (%s): %d read, %d kept\n", f.Path, name, f.Read, f.Kept); err != nil {
			return err
		}
		for _, part := range []struct {
			verb    string
			reasons map[string]int
		}{{"dropped", f.Dropped}, {"repaired", f.Repaired}} {
			for _, reason := range slices.Sorted(maps.Keys(part.reasons)) {
				if err := a.printf("  %s %d: %s\n", part.verb, part.reasons[reason], reason); err != nil {
					return err
				}
			}
		}
	}
	w := im.written
	if w.Runs == 0 {
		return nil
	}
	where := "nothing written (no --out)"
	if w.Out != "" {
		where = w.Out
	}
	return a.printf("%s: %d runs, %d safe, %d unsafe, %d unlabelled, %d steps\n", where, w.Runs, w.Safe, w.Unsafe, w.Unknown, w.Steps)
}
