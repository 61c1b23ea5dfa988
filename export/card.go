package export

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/eval"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
)

// WriteCard writes the model card, README.md, into the artifact in dir: what the
// model is, what it was trained on, what it promises and how it measured. It
// holds measured values only and carries no weight in any digest.
func WriteCard(dir string, m artifact.Manifest, report eval.Report) error {
	return atomicfile.Write(filepath.Join(dir, artifact.CardFile), func(w io.Writer) error {
		var b strings.Builder
		p := func(format string, a ...any) { fmt.Fprintf(&b, format, a...) }
		p("# DreamGuard model card\n\n")
		p("A guard for the tool calls of language-model agents, made by `dreamguard run` with configuration `%s`.\n\n", report.Config)
		p("| | |\n| --- | --- |\n| model digest | `%s` |\n| calibration digest | `%s` |\n| tool version | %s |\n| encoder | %s |\n", report.Model, report.Calibration, m.Tool, m.Encoder)
		p("| sizes | encoder %d, features %d, adapter %d, hidden %d, latent %d x %d, heads %d and %d, %d trees each |\n| seed | %d |\n", m.Dims.D, m.Dims.F, m.Dims.P, m.Dims.H, m.Dims.G, m.Dims.C, m.Dims.Q, m.Dims.U, m.Dims.T, m.Seed)
		for _, name := range slices.Sorted(maps.Keys(m.Data)) {
			p("| data: %s | %d trajectories, sha256 `%.16s…` |\n", name, m.Data[name].N, m.Data[name].Digest)
		}
		p("\n## What it promises\n\n")
		for _, s := range report.Guarantee {
			p("- %s\n", s)
		}
		p("\nThe promise is about runs exchangeable with the calibration runs. It does not cover an adaptive attacker, nor a deployment that differs from them: calibrate on your own traffic.\n")
		p("\n## How it measured (protocol %s)\n\n", report.Protocol)
		p("| set | runs | unsafe | AUROC | F1 | recall | false alarms |\n| --- | --- | --- | --- | --- | --- | --- |\n")
		for _, s := range report.Sets {
			if s.NotRun != "" {
				p("| %s | not run | | | | | |\n", s.Name)
				continue
			}
			p("| %s | %d | %d | %s | %s | %s | %s |\n", s.Name, s.N, s.Unsafe, figure(s.AUROC, s.CI.AUROC), figure(s.F1, s.CI.F1), figure(s.SR, s.CI.SR), figure(s.FPR, s.CI.FPR))
		}
		p("\nBrackets are 95 %% intervals. The definitions stand in the package comment of `eval`.\n")
		p("\n## Limits\n\n- Only tool calls are judged; a plain message is scored and never stopped.\n- A hazard without any planted text in sight, and without a build-up before it, is hard to see before it happens.\n- Texts are read up to fixed lengths; English is what the order detection knows.\n")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func figure(v eval.Num, ci eval.Interval) string {
	if !v.OK() {
		return "-"
	}
	if !ci[0].OK() || !ci[1].OK() {
		return fmt.Sprintf("%.3f", float64(v))
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", float64(v), float64(ci[0]), float64(ci[1]))
}
