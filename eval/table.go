package eval

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table writes the results as plain text: one line per set, then the baselines,
// then what the thresholds promise.
func Table(w io.Writer, r Report) error {
	head := []string{"set", "runs", "unsafe", "AUROC", "95 % interval", "rec@5%", "SR", "FPR", "F1", "PHIR", "PHIR-at", "PHIR@10%", "MAS"}
	rows := [][]string{head}
	var notRun []string
	for _, s := range r.Sets {
		if s.NotRun != "" {
			rows = append(rows, []string{s.Name, "not run"})
			notRun = append(notRun, s.Name+": "+s.NotRun)
			continue
		}
		rows = append(rows, []string{
			s.Name, fmt.Sprint(s.N), fmt.Sprint(s.Unsafe), figure(s.AUROC), span(s.CI.AUROC), figure(s.RecallAtFPR.At05),
			figure(s.SR), figure(s.FPR), figure(s.F1), figure(s.PHIR), figure(s.PHIROrAt), figure(s.PHIRAtFPR.At10), count(s.MAS),
		})
	}
	var b strings.Builder
	align(&b, rows)
	if len(r.Baselines) > 0 {
		b.WriteString("\nbaselines: AUROC and recall at 5 % false positives\n")
		head := []string{"set", "guard"}
		for _, m := range r.Baselines {
			head = append(head, m.Name)
		}
		rows := [][]string{head}
		for _, s := range r.Sets {
			if strings.HasSuffix(s.Name, RecalibratedSuffix) || s.NotRun != "" {
				continue
			}
			line := []string{s.Name, pair(&s)}
			for _, m := range r.Baselines {
				line = append(line, pair(find(m.Sets, s.Name)))
			}
			rows = append(rows, line)
		}
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

// align writes columns, the first to the left and the others to the right.
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
	for _, r := range rows {
		var line strings.Builder
		for j, cell := range r {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(cell))
			if j == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
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
