package doctor

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "go        %s %s\ncores     %d\n", r.Go, r.Platform, r.Cores)
	if m := r.Memory; m != nil {
		fmt.Fprintf(&b, "memory    %s, %s available\n", size(m.Total), size(m.Available))
	}
	if d := r.Disk; d != nil {
		fmt.Fprintf(&b, "disk      %s free in %s\n", size(d.Free), d.Path)
	}
	if r.SIMD.On {
		b.WriteString("simd      on\n")
	} else {
		fmt.Fprintf(&b, "simd      off: %s\n", r.SIMD.Reason)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Environment)) {
		fmt.Fprintf(&b, "%s=%s\n", name, r.Environment[name])
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "backend\tsteps/s\tfirst step\tlibrary")
	var notes strings.Builder
	for _, x := range r.Backends {
		switch {
		case !x.Available:
			fmt.Fprintf(t, "%s\t-\t-\tnot available\n", x.Name)
			fmt.Fprintf(&notes, "%s: %s\n", x.Name, x.Reason)
		case x.Rate == nil:
			fmt.Fprintf(t, "%s\t-\t-\t%s\n", x.Name, x.Description)
		default:
			fmt.Fprintf(t, "%s\t%.0f\t%.1f s\t%s\n", x.Name, x.Rate.StepsPerSecond, x.Rate.FirstSeconds, x.Description)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
	}
	for i, e := range r.Encoders {
		if i == 0 {
			b.WriteString("\n")
		}
		if e.Usable {
			fmt.Fprintf(&b, "encoder %s: %s %s, width %d, %s\n", e.Path, e.Kind, e.Model, e.Width, size(e.Bytes))
		} else {
			fmt.Fprintf(&b, "encoder %s: not usable: %s\n", e.Path, e.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// size prints bytes in the unit that people expect.
func size(n int64) string {
	const mib = 1 << 20
	if n < 1024*mib {
		return fmt.Sprintf("%.0f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1024*mib))
}
