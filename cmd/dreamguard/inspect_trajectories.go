package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/audit"
	"github.com/dreamguard/dreamguard/data/clean"
	"github.com/dreamguard/dreamguard/data/store"
)

// trajectoriesInfo is what inspect --json prints of files of trajectories.
type trajectoriesInfo struct {
	Files      []fileInfo   `json:"files"`
	Duplicates audit.Report `json:"duplicates"` // within each file and between files
}

type fileInfo struct {
	Path      string                `json:"path"`
	Summary   audit.Summary         `json:"summary"`
	Leaks     map[string]audit.Leak `json:"leaks"`     // by leak rule
	Shortcuts []audit.Shortcut      `json:"shortcuts"` // phrases that stand in runs of one label only, up to the first hazard; none where a label has no runs
}

// A phrase counts as a shortcut from so many runs on; so many are shown.
const (
	shortcutRuns = 20
	shortcutTop  = 10
)

func (a *app) inspectTrajectories(ctx context.Context, paths []string, show string, asJSON bool) error {
	if show != "" && len(paths) > 1 {
		return usagef("--show wants one file, not %d", len(paths))
	}
	if show != "" {
		ts, err := store.ReadAll(paths[0])
		if err != nil {
			return err
		}
		return a.show(ts, show, asJSON)
	}
	out := trajectoriesInfo{}
	sets := map[string][]*data.Trajectory{}
	task := a.progress().Start("inspect", len(paths))
	defer task.Done()
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		ts, err := store.ReadAll(path)
		if err != nil {
			return err
		}
		sets[path] = ts
		f := fileInfo{path, audit.Summarize(ts), audit.Leaks(ts), []audit.Shortcut{}}
		// Without runs of the other label every phrase is of one label only.
		if f.Summary.Total.Safe > 0 && f.Summary.Total.Unsafe > 0 {
			f.Shortcuts = append(f.Shortcuts, audit.Shortcuts(ts, shortcutRuns, shortcutTop)...)
		}
		out.Files = append(out.Files, f)
		task.Add(1)
	}
	out.Duplicates = audit.Duplicates(sets)
	task.End(nil) // before the result, so that they do not mix on a terminal
	if asJSON {
		return a.printJSON(out)
	}
	return a.printTrajectories(out)
}

// show prints the trajectory of that id, or of that number.
func (a *app) show(ts []*data.Trajectory, which string, asJSON bool) error {
	i := slices.IndexFunc(ts, func(t *data.Trajectory) bool { return t.ID == which })
	if i < 0 {
		n, err := strconv.Atoi(which)
		if err != nil || n < 0 || n >= len(ts) {
			return usagef("--show %s: no trajectory has this id, and the numbers are 0 to %d", which, len(ts)-1)
		}
		i = n
	}
	if asJSON {
		return a.printJSON(ts[i])
	}
	return audit.Render(a.stdout, ts[i])
}

func (a *app) printTrajectories(info trajectoriesInfo) error {
	for i, f := range info.Files {
		if i > 0 {
			if err := a.printf("\n"); err != nil {
				return err
			}
		}
		if err := a.printf("%s\n", f.Path); err != nil {
			return err
		}
		t := a.table()
		t.row("  dataset", "runs", "groups", "goals", "safe", "unsafe", "unlabelled", "located", "attacked", "no call", "steps: median", "max")
		for _, name := range slices.Sorted(maps.Keys(f.Summary.Datasets)) {
			statsRow(t, name, f.Summary.Datasets[name])
		}
		if len(f.Summary.Datasets) > 1 {
			statsRow(t, "all", f.Summary.Total)
		}
		if err := t.flush(); err != nil {
			return err
		}
		for _, rule := range clean.Rules() {
			if l := f.Leaks[rule.Name]; l.Runs > 0 {
				if err := a.printf("  leak %s in %d runs (%d safe, %d unsafe): %s\n", rule.Name, l.Runs, l.Safe, l.Unsafe, rule.Doc); err != nil {
					return err
				}
			}
		}
		if len(f.Shortcuts) == 0 {
			continue
		}
		if err := a.printf("  phrases in runs of one label only (unsafe runs are read up to the first hazard):\n"); err != nil {
			return err
		}
		t = a.table()
		for _, s := range f.Shortcuts {
			t.row("    "+strconv.Quote(s.Phrase), s.Label.String(), fmt.Sprintf("%d runs", s.Runs), fmt.Sprintf("%d groups", s.Groups))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if len(info.Duplicates.Overlaps) == 0 {
		return a.printf("\nno duplicates\n")
	}
	if err := a.printf("\nduplicates (near: similarity from %.2g):\n", info.Duplicates.Threshold); err != nil {
		return err
	}
	t := a.table()
	t.row("  runs of", "have a twin in", "same id", "exact", "near", "exact, other label")
	for _, o := range info.Duplicates.Overlaps {
		t.row("  "+o.Set, o.Other, fmt.Sprint(o.Shared), fmt.Sprint(o.Exact), fmt.Sprint(o.Near), fmt.Sprint(o.Conflict))
	}
	return t.flush()
}

func statsRow(t *table, name string, s audit.Stats) {
	cells := []string{"  " + name}
	for _, n := range []int{s.Runs, s.Groups, s.Goals, s.Safe, s.Unsafe, s.Unknown, s.Located, s.Attacked, s.NoCall, s.Steps.P50, s.Steps.Max} {
		cells = append(cells, fmt.Sprint(n))
	}
	t.row(cells...)
}
