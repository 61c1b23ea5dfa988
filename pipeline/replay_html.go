package pipeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed replay.tmpl
var replayTemplate string

var replayPage = template.Must(template.New("replay").Funcs(template.FuncMap{
	"percent": func(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) },
	"reasons": reasonText,
	"score":   func(x float64) string { return fmt.Sprintf("%.4f", x) },
	"ms":      func(x float64) string { return fmt.Sprintf("%.2f ms", x) },
}).Parse(replayTemplate))

// reasonText lists reasons with their counts, the most frequent first.
func reasonText(m map[string]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %d", n, m[n])
	}
	return strings.Join(names, ", ")
}

// WriteHTML writes one page without scripts or outside resources.
func (r *ReplayReport) WriteHTML(w io.Writer) error {
	if err := replayPage.Execute(w, r); err != nil {
		return fmt.Errorf("replay.html: %w", err)
	}
	return nil
}
