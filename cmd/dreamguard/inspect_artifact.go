package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/pipeline"
)

// artifactInfo is what inspect --json prints of an artifact.
type artifactInfo struct {
	Path        string                `json:"path"`
	Digest      string                `json:"model_digest"`
	Values      int                   `json:"values"`
	Manifest    artifact.Manifest     `json:"manifest"`
	Calibration *artifact.Calibration `json:"calibration"` // null: not calibrated
}

func (a *app) inspectArtifact(path string, asJSON bool) error {
	art, err := pipeline.OpenArtifact(path)
	if err != nil {
		return err
	}
	out := artifactInfo{Path: path, Digest: art.Digest, Manifest: art.Manifest, Calibration: art.Calibration}
	for _, t := range art.Tensors {
		out.Values += len(t.Data)
	}
	if asJSON {
		return a.printJSON(out)
	}
	m, d := art.Manifest, art.Manifest.Dims
	t := a.table()
	t.row("artifact", path)
	t.row("model digest", out.Digest)
	t.row("written by", m.Tool)
	t.row("encoder", m.Encoder.String())
	t.row("features", fmt.Sprintf("%d, version %d", d.F, m.Features.Version))
	t.row("sizes", fmt.Sprintf("adapter %d, hidden %d, z %d x %d, heads %d and %d, %d trees each", d.P, d.H, d.G, d.C, d.Q, d.U, d.T))
	t.row("values", fmt.Sprintf("%d in %d tensors", out.Values, len(art.Tensors)))
	t.row("seed", fmt.Sprint(m.Seed))
	for _, name := range slices.Sorted(maps.Keys(m.Data)) {
		t.row("data "+name, fmt.Sprintf("%d trajectories, sha256 %.12s", m.Data[name].N, m.Data[name].Digest))
	}
	if c := art.Calibration; c == nil {
		t.row("calibration", "none: run dreamguard calibrate")
	} else {
		hold, block := c.Thresholds.Levels()
		t.row("hold at", fmt.Sprintf("%.6g", hold))
		t.row("block at", fmt.Sprintf("%.6g", block))
		promise := fmt.Sprintf("at most %g of safe runs are held or blocked (%d runs in %d groups, %d alerted)",
			c.Certificate.Alpha, c.Certificate.N, c.Certificate.Groups, c.Certificate.Alerted)
		if c.Certificate.NoGuarantee {
			promise = fmt.Sprintf("none: %d safe runs are too few", c.Certificate.N)
		}
		t.row("promise", promise)
		t.row("calibrated", c.Certificate.Created)
	}
	return t.flush()
}
