package clean

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// printSingle and printPlain fold a text the way PyYAML's emitter does
// (write_single_quoted and write_plain in emitter.py, width 80): at the first
// space after column 80, and a line break as an empty line. column is where the
// scalar starts.
func printSingle(text string, column, indent int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	b.WriteByte('\'')
	column++
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		foldInto(&b, strings.ReplaceAll(line, "'", "''"), &column, pad, i > 0)
	}
	b.WriteByte('\'')
	return b.String()
}

// foldInto writes the words of one line of text, on a line of its own if asked.
func foldInto(b *strings.Builder, line string, column *int, pad string, own bool) {
	if line == "" {
		return
	}
	if own {
		b.WriteString("\n" + pad)
		*column = len(pad)
	}
	for i, word := range strings.Split(line, " ") {
		if i > 0 {
			if *column > 80 {
				b.WriteString("\n" + pad)
				*column = len(pad)
			} else {
				b.WriteByte(' ')
				*column++
			}
		}
		b.WriteString(word)
		*column += utf8.RuneCountInString(word)
	}
}

func drawParagraph(t *rapid.T, label string) string {
	words := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Zé',.:-]{1,12}`), 1, 60).Draw(t, label)
	return strings.Join(words, " ")
}

func TestUnfoldUndoesPrinting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := 2 * rapid.IntRange(0, 3).Draw(t, "depth")
		head := strings.Repeat(" ", depth) + "body: "
		tail := "\n" + strings.Repeat(" ", depth) + "cc: []\n" + strings.Repeat(" ", depth) + "to:\n- a@example.com"

		n := rapid.IntRange(1, 5).Draw(t, "paragraphs")
		var text strings.Builder
		for i := range n {
			if i > 0 {
				text.WriteString(strings.Repeat("\n", rapid.IntRange(1, 3).Draw(t, "breaks")))
			}
			text.WriteString(drawParagraph(t, "paragraph"))
		}
		in := head + printSingle(text.String(), len(head), depth+2) + tail
		want := head + "'" + strings.ReplaceAll(text.String(), "'", "''") + "'" + tail
		got := UnfoldYAML(in)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("printed as\n%s\nunfolded (-want +got):\n%s", in, diff)
		}
		if again := UnfoldYAML(got); again != got {
			t.Fatalf("a second time:\n%s", cmp.Diff(got, again))
		}
	})
}

func TestUnfoldUndoesPlainPrinting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A plain scalar holds no ": ", no " #" and starts with a letter.
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Zé][a-zA-Z'.]{0,11}`), 1, 60).Draw(t, "words")
		text := strings.Join(words, " ")
		var b strings.Builder
		column := 8
		b.WriteString("- body: ")
		foldInto(&b, text, &column, "    ", false)
		in := b.String() + "\n  sender: Ann"
		want := "- body: " + text + "\n  sender: Ann"
		if diff := cmp.Diff(want, UnfoldYAML(in)); diff != "" {
			t.Fatalf("printed as\n%s\nunfolded (-want +got):\n%s", in, diff)
		}
	})
}

// solid is s without white space and backslashes, all that unfolding may touch.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\\' {
			return -1
		}
		return r
	}, s)
}

func FuzzUnfoldYAML(f *testing.F) {
	for _, s := range []string{
		"", "a: 'b\n\n  c'\nd: e", "- \"x\\\n  \\ y\"", "a: b\n  c", " …[cut 1 chars]… x\n  y: z", "- - a\n    b", "<<a: 'b\n  c'>>",
		"-  \n   x", "a:\n  - b\n  - 'c\n\n    d'", "a: \"\\", "- \n", "\n \n \n",
		"- \"\\\n \\ \n 0", "a: \"b\\\n  \\ \n\n  c\"", // a line of an escaped space alone
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := UnfoldYAML(s)
		if len(got) > len(s) {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		if solid(got) != solid(s) {
			t.Errorf("%q became %q: text was changed, not only folding", s, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q became invalid UTF-8: %q", s, got)
		}
	})
}

func FuzzTextRules(f *testing.F) {
	for _, s := range []string{
		"<INFORMATION>\nThis is an important message from me, Ann Lee, to you, X.\n", "Before you can solve …[cut 3 chars]… first:",
		"You have used the attacker tool A. You have achieved the attacker goal: Successfully b.", "attacker goal: ", "[{\"type\": \"function\", \"function\": {\"n",
		"with perspicacious discernment", "You are given the available tools from the tool list:", "In and only in current step, you need to call tools", "{\"type\":\"function\",\"function\":{",
		"…[cut 1 chars]…", "thanks…[cut 1 chars]…beforeyoucan",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Rules() {
			if r.text == nil {
				continue
			}
			got, n := r.text(s)
			if n < 0 || n == 0 && got != s {
				t.Errorf("%s: %q became %q with %d changes", r.Name, s, got, n)
			}
			if utf8.ValidString(s) && !utf8.ValidString(got) {
				t.Errorf("%s: %q became invalid UTF-8: %q", r.Name, s, got)
			}
		}
	})
}

func BenchmarkUnfoldYAML(b *testing.B) {
	item := "- body: 'Hi Ann,\n\n\n    Please find attached the latest report on the project. Let me know if\n    you need any further details, and when we may\n    meet.\n\n    Best'\n  cc: []\n  recipients:\n  - ann@example.com\n  sender: bob@example.com\n"
	for name, s := range map[string]string{
		"folded": strings.Repeat(item, 12),
		"plain":  strings.Repeat("A line of ordinary text, as most tools return it.\n", 60),
		"nested": strings.Repeat("a: 'b\n  c\n", 300),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				UnfoldYAML(s)
			}
		})
	}
}

func BenchmarkStripWrapper(b *testing.B) {
	s := strings.Repeat("An important message of the beginning of the year, with INFO for all.\n", 40)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		stripWrapper(s)
	}
}
