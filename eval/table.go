package eval

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tableWidth is how many characters a line of a table has at most, if one column
// fits beside the names.
const tableWidth = 100

// Table writes the results as plain text: one line per set, figures of runs first and
// then those of steps; the baselines, one line per model; what the thresholds promise.
func Table(w io.Writer, r Report) error {
	runs := [][]string{{"set", "runs", "unsafe", "AUROC", "95 % interval", "rec@5%", "SR", "FPR", "F1"}}
	steps := [][]string{{"set", "PHIR", "PHIR-at", "PHIR@10%", "MAS"}} // of the first intervention
	var notRun []string
	for _, s := range r.Sets {
		if s.NotRun != "" {
			runs = append(runs, []string{s.Name, "not run"})
			notRun = append(notRun, s.Name+": "+s.NotRun)
			continue
		}
		runs = append(runs, []string{
			s.Name, fmt.Sprint(s.N), fmt.Sprint(s.Unsafe), figure(s.AUROC), span(s.CI.AUROC), figure(s.RecallAtFPR.At05),
			figure(s.SR), figure(s.FPR), figure(s.F1),
		})
		if s.Unsafe > 0 {
			steps = append(steps, []string{s.Name, figure(s.PHIR), figure(s.PHIROrAt), figure(s.PHIRAtFPR.At10), count(s.MAS)})
		}
	}
	var b strings.Builder
	align(&b, runs)
	if len(steps) > 1 {
		b.WriteByte('\n')
		align(&b, steps)
	}
	if rows := baselines(r); len(rows) > 2 {
		b.WriteString("\nbaselines: AUROC and recall at 5 % false positives\n")
		align(&b, rows)
	}
	for _, list := range [][]string{notRun, r.Guarantee, r.Notes} {
		for i, line := range list {
			if i == 0 {
				b.WriteByte('\n')
			}
			b.WriteString(printable(line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// baselines are a head, the guard and the baselines on the sets where runs can be ranked.
func baselines(r Report) [][]string {
	rows := [][]string{{"model"}, {"guard"}}
	for _, m := range r.Baselines {
		rows = append(rows, []string{m.Name})
	}
	for _, s := range r.Sets {
		if strings.HasSuffix(s.Name, RecalibratedSuffix) || !s.AUROC.OK() {
			continue
		}
		rows[0], rows[1] = append(rows[0], s.Name), append(rows[1], pair(&s))
		for i, m := range r.Baselines {
			rows[2+i] = append(rows[2+i], pair(find(m.Sets, s.Name)))
		}
	}
	return rows
}

func find(sets []SetResult, name string) *SetResult {
	for i := range sets {
		if sets[i].Name == name {
			return &sets[i]
		}
	}
	return nil
}

// pair renders AUROC and recall of a baseline in one cell.
func pair(s *SetResult) string {
	if s == nil || s.NotRun != "" {
		return "-"
	}
	return figure(s.AUROC) + " " + figure(s.RecallAtFPR.At05)
}

// figure renders a share with three digits, a dash where there is none.
func figure(n Num) string {
	if !n.OK() {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(n))
}

// count renders a number of steps.
func count(n Num) string {
	if !n.OK() {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(n))
}

// span renders an interval.
func span(i Interval) string {
	if !i[0].OK() || !i[1].OK() {
		return "-"
	}
	return fmt.Sprintf("%.3f-%.3f", float64(i[0]), float64(i[1]))
}

// align writes columns, the first to the left and the others to the right. Those
// that do not fit into tableWidth go below, beside the first column again.
func align(b *strings.Builder, rows [][]string) {
	var width []int
	for _, r := range rows {
		for j := range r {
			r[j] = printable(r[j])
			if j == len(width) {
				width = append(width, 0)
			}
			width[j] = max(width[j], utf8.RuneCountInString(r[j]))
		}
	}
	for from := 1; from < len(width); {
		to, used := from, width[0]
		for to < len(width) && (to == from || used+2+width[to] <= tableWidth) {
			used += 2 + width[to]
			to++
		}
		if from > 1 {
			b.WriteByte('\n')
		}
		for _, r := range rows {
			line := r[0] + strings.Repeat(" ", width[0]-utf8.RuneCountInString(r[0]))
			for j := from; j < min(to, len(r)); j++ {
				line += "  " + strings.Repeat(" ", width[j]-utf8.RuneCountInString(r[j])) + r[j]
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		from = to
	}
}

// printable keeps control and reordering characters of file names and run IDs
// away from the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
}
