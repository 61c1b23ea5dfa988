package pipeline

import (
	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/export"
	"github.com/dreamguard/dreamguard/guard"
)

// writeCard puts the model card with the measured figures into the artifact.
func (r *Run) writeCard(m *guard.Model, report eval.Report) error {
	return export.WriteCard(r.ArtifactDir(), m.Manifest(), report)
}
