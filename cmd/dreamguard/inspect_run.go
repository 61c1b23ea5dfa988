package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/pipeline"
)

// runInfo is what inspect --json prints of a run folder.
type runInfo struct {
	Path   string                           `json:"path"`
	Config string                           `json:"config"`
	Stages map[string]*pipeline.StageRecord `json:"stages"` // those that were finished
}

func (a *app) inspectRun(dir string, asJSON bool) error {
	r, err := pipeline.Reopen(dir, pipeline.Options{})
	if err != nil {
		return err
	}
	out := runInfo{Path: dir, Config: r.Config.Name, Stages: map[string]*pipeline.StageRecord{}}
	for _, name := range pipeline.Stages {
		if rec := r.Record(name); rec != nil {
			out.Stages[name] = rec
		}
	}
	if asJSON {
		return a.printJSON(out)
	}
	t := a.table()
	t.row("run", dir)
	t.row("config", fmt.Sprintf("%s, protocol %s, seed %d", r.Config.Name, r.Config.Data.Protocol, r.Config.Seed))
	for _, name := range pipeline.Stages {
		rec := out.Stages[name]
		if rec == nil {
			t.row(name, "not done")
			continue
		}
		t.row(name, fmt.Sprintf("%.1f s, %.0f MiB at most, %s%s", rec.Seconds, rec.PeakMiB, rec.Finished.UTC().Format("2006-01-02 15:04:05Z"), countsText(rec.Counts)))
	}
	return t.flush()
}

// countsText lists counts, largest first.
func countsText(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, ", %d %s", counts[name], name)
	}
	return b.String()
}
