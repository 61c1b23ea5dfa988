package serve

import (
	"strings"
	"testing"
)

func TestResultText(t *testing.T) {
	for in, want := range map[string]string{
		``:       ``,
		`null`:   ``,
		`"a\nb"`: "a\nb",
		`[{"type":"text","text":"hello\nworld"},{"type":"text","text":"again"}]`:              "hello\nworld\nagain",
		`{"stdout":"out","stderr":"","interrupted":false,"isImage":false}`:                    "out",
		`{"type":"text","file":{"filePath":"/a","content":"x = 1","numLines":1}}`:             "/a\nx = 1\n1",
		`{"balance":1810.50,"iban":"DE00"}`:                                                   "1810.50\nDE00",
		`{"a":["type","x",["y"],{"type":["kept"]}],"b":{"text":"z"}}`:                         "type\nx\ny\nkept\nz",
		`{"content":[{"type":"text","text":"a"}],"isError":true,"structuredContent":{"n":3}}`: "a\n3",
		`broken`:      `broken`,
		`{"a":"b"`:    `{"a":"b"`,
		`17`:          `17`,
		`[[["deep"]]`: `[[["deep"]]`,
	} {
		if got := ResultText([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if got := ResultText([]byte(deep)); got != deep {
		t.Error("a result that is nested too deep is not given as it is")
	}
}
