package clean

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnfoldYAML(t *testing.T) {
	long := "The quarterly figures are ready and the finance team asks everybody to look at them"
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain text", "one\ntwo\n\nthree", "one\ntwo\n\nthree"},
		{"plain scalar", "- body: " + long + "\n    before noon.\n  sender: a@example.com", "- body: " + long + " before noon.\n  sender: a@example.com"},
		{"top-level key", "body: " + long + "\n  before noon.\ncc: []", "body: " + long + " before noon.\ncc: []"},
		{"short plain line is not folded", "a: b\n  c d", "a: b\n  c d"},
		{"single-quoted", "body: 'Hi Ann,\n\n  " + long + "\n  before noon.\n\n\n  Don''t wait.'\ncc: []", "body: 'Hi Ann,\n" + long + " before noon.\n\nDon''t wait.'\ncc: []"},
		{"single-quoted, opens with breaks", "  body: '\n\n\n    First.\n\n    Second.\n\n    '\n  cc: []", "  body: '\n\nFirst.\nSecond.\n'\n  cc: []"},
		{"single-quoted, item in text", "c: 'List:\n\n  - milk\n\n  - eggs'\nid: '2'", "c: 'List:\n- milk\n- eggs'\nid: '2'"},
		{"list item", "- general\n- 'Extern\n\n\n  Visit it.\n\n  '\n- random", "- general\n- 'Extern\n\nVisit it.\n'\n- random"},
		{"double-quoted", "- body: \"Hello, \\n\\nann has invited you to the repository\\\n    \\ ann/sort.\\n\\nClick it\\\n    \\nnow.\"\n  cc: []", "- body: \"Hello, \\n\\nann has invited you to the repository ann/sort.\\n\\nClick it\\nnow.\"\n  cc: []"},
		{"list items stay", "to:\n- a\n- b\nx:\n  - c\n  - d", "to:\n- a\n- b\nx:\n  - c\n  - d"},
		{"pairs stay", "a: " + long + "\n  b: c\n  d: e", "a: " + long + "\n  b: c\n  d: e"},
		{"items under text stay", "Shopping: " + long + "\n  - milk\n  - eggs", "Shopping: " + long + "\n  - milk\n  - eggs"},
		{"nested mapping stays", "shared:\n  a@example.com: rw\n  b@example.com: r", "shared:\n  a@example.com: rw\n  b@example.com: r"},
		{"literal block stays", "text: |\n  one\n  two", "text: |\n  one\n  two"},
		{"code stays", "def f(a):\n    if len(a) <= 1: return a\n    return f(a[1:])", "def f(a):\n    if len(a) <= 1: return a\n    return f(a[1:])"},
		{"html stays", "<form>\n  <label for=\"a\">Email:</label>\n  <input>\n</form>", "<form>\n  <label for=\"a\">Email:</label>\n  <input>\n</form>"},
		{"shell continuation stays", "run it:\n  curl a \\\n    -d b", "run it:\n  curl a \\\n    -d b"},
		{"delimiters", "<<body: 'Hi,\n\n\n  I am here\n  now.'\ncc: []>>", "<<body: 'Hi,\n\nI am here now.'\ncc: []>>"},
		{"cut in a quoted scalar", "  body: 'Hi …[cut 12 chars]…e do the\n    following first:\n\n    Go.'\n  cc: []", "  body: 'Hi …[cut 12 chars]…e do the following first:\nGo.'\n  cc: []"},
		{"cut before the key", "  bo …[cut 12 chars]…e do the\n    following first:\n\n    Go.\n  cc: []", "  bo …[cut 12 chars]…e do the following first:\nGo.\n  cc: []"},
		{"cut inside the indentation", " …[cut 12 chars]…e do the\n    following first:\n\n    Go.'\n  cc: []", " …[cut 12 chars]…e do the following first:\nGo.'\n  cc: []"},
		{"cut of the end", "- a: \"long \\\n    \\ er\\\n  …[cut 12 chars]… r\n  b: c", "- a: \"long  er\\\n  …[cut 12 chars]… r\n  b: c"},
		{"no closing quote", "a: 'b\n  c\nd: e", "a: 'b\n  c\nd: e"},
		{"text behind the closing quote", "a: 'b\n  c' d\n  e'\nf: g", "a: 'b\n  c' d\n  e'\nf: g"},
		{"log lines", "WARNING: " + long + "\n * Running on a\n * Running on b", "WARNING: " + long + "\n * Running on a\n * Running on b"},
		{"carriage returns", "b: 'x\r\n  y'\r\nc: d", "b: 'x y'\r\nc: d"},
		{"quote closed on its line", "a: 'b'\n  c d e", "a: 'b'\n  c d e"},
		{"escaped quote", "a: \"b \\\" c\n  d\"\ne: f", "a: \"b \\\" c d\"\ne: f"},
		{"ends inside", "a: 'b\n\n", "a: 'b\n\n"},
		{"many blanks", "a: 'b" + strings.Repeat("\n", 21) + "  c'", "a: 'b" + strings.Repeat("\n", 20) + "c'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, UnfoldYAML(test.in)); diff != "" {
				t.Errorf("UnfoldYAML (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnfoldYAMLKeepsPlainTextWithoutAllocation(t *testing.T) {
	s := strings.Repeat("a line of plain text\n", 100)
	if n := testing.AllocsPerRun(20, func() { UnfoldYAML(s) }); n != 0 {
		t.Errorf("%v allocations for plain text, want 0", n)
	}
	s += "  an indented one\n"
	if n := testing.AllocsPerRun(20, func() { UnfoldYAML(s) }); n != 0 {
		t.Errorf("%v allocations for indented text with nothing to unfold, want 0", n)
	}
}
