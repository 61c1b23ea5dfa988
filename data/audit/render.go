package audit

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/data"
)

// maxShown is how much of one text Render prints, in characters.
const maxShown = 800

// Render prints one trajectory for a person: what the run is, its task, and
// each step with the first hazard and the step that first showed the planted
// text marked. Long texts are cut in the middle. Control characters are printed
// as escapes, since tool output may hold terminal commands.
func Render(w io.Writer, t *data.Trajectory) error {
	b := bufio.NewWriter(w)
	p := func(format string, a ...any) { fmt.Fprintf(b, format, a...) } // bufio keeps the first error for Flush
	p("%s\n", visible(t.ID))
	for _, f := range []struct{ name, value string }{
		{"dataset", t.Dataset}, {"group", t.Group}, {"agent", t.AgentModel}, {"suite", t.Suite},
		{"user task", t.UserTask}, {"injection task", t.InjectionTask}, {"attack", t.Attack},
		{"attack tool", t.AttackTool}, {"label", label(t)},
		{"attack succeeded", flag(t.AttackSucceeded)}, {"task succeeded", flag(t.TaskSucceeded)},
	} {
		if f.value != "" {
			p("  %-17s %s\n", f.name, visible(f.value))
		}
	}
	if t.InjectionSeen != nil && *t.InjectionSeen < 0 {
		p("  %-17s before step 0\n", "planted text")
	}
	if len(t.Tools) > 0 {
		names := make([]string, len(t.Tools))
		for i := range t.Tools {
			names[i] = t.Tools[i].Name
		}
		p("  %-17s %s\n", "tools", visible(strings.Join(names, ", ")))
	}
	p("\n")
	text(b, "task", t.Task)
	text(b, "context", t.Context)
	for i := range t.Steps {
		s := &t.Steps[i]
		p("\n[%d] %s", i, s.Type)
		if s.Tool != "" {
			p(" %s", visible(s.Tool))
		}
		if t.Located() && *t.FirstHazard == i {
			p("   <-- FIRST HAZARD (%s)", visible(t.HazardLabel))
		}
		p("\n")
		text(b, "text", s.Text)
		text(b, "args", s.Args)
		mark := ""
		if t.InjectionSeen != nil && *t.InjectionSeen == i {
			mark = " (shows the planted text)"
		}
		text(b, "result"+mark, s.Result)
		text(b, "error", s.Error)
	}
	return b.Flush()
}

func label(t *data.Trajectory) string {
	switch {
	case t.Located():
		return fmt.Sprintf("%v, first hazard at step %d (%s)", t.Label, *t.FirstHazard, t.HazardLabel)
	case t.Label == data.Unsafe:
		return fmt.Sprintf("%v, hazard not located (%s)", t.Label, t.HazardLabel)
	}
	return t.Label.String()
}

func flag(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func text(w io.Writer, name, s string) {
	if s == "" {
		return
	}
	lines := strings.Split(visible(shorten(s)), "\n")
	if len(lines) == 1 && len(lines[0]) <= 90 {
		fmt.Fprintf(w, "    %s: %s\n", name, lines[0])
		return
	}
	fmt.Fprintf(w, "    %s:\n", name)
	for _, line := range lines {
		fmt.Fprintf(w, "      | %s\n", line)
	}
}

// shorten cuts the middle of a long text out, at characters.
func shorten(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= maxShown {
		return s
	}
	r := []rune(s)
	head := maxShown * 2 / 3
	tail := maxShown - head
	return string(r[:head]) + fmt.Sprintf("\n... %d characters left out ...\n", n-maxShown) + string(r[n-tail:])
}

// visible escapes what a terminal would obey or hide, line ends excepted.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case !unicode.IsPrint(r) && r != ' ':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
