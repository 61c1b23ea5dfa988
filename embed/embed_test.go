package embed

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/verdict"
	"pgregory.net/rapid"
)

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(3, 200).Draw(t, "max")
		out := Clip(s, n)
		if len(out) > n {
			t.Fatalf("%d bytes, at most %d were asked for", len(out), n)
		}
		if len(s) <= n && out != s {
			t.Fatal("a short text was changed")
		}
		if utf8.ValidString(s) && !utf8.ValidString(out) {
			t.Fatal("a rune was cut")
		}
	})
	if got := Clip("abcdefghi", 6); got != "abcdhi" {
		t.Errorf("Clip = %q: want two thirds from the head and a third from the tail", got)
	}
}

func TestTexts(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"task":             {TaskText(verdict.Task{Instruction: "do"}), "do"},
		"task and context": {TaskText(verdict.Task{Instruction: "do", Context: "note"}), "do\nnote"},
		"message":          {CallText(verdict.Call{Text: "hi"}), "hi"},
		"call":             {CallText(verdict.Call{Tool: "t", Arguments: "{}"}), "t {}"},
		"call with words":  {CallText(verdict.Call{Tool: "t", Arguments: "{}", Text: "why"}), "t {}\nwhy"},
		"nothing":          {ResultText(verdict.Result{}), ""},
		"error":            {ResultText(verdict.Result{Error: "e"}), "e"},
		"both":             {ResultText(verdict.Result{Output: "o", Error: "e"}), "o\ne"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	long := strings.Repeat("x", 10*MaxText)
	for _, s := range []string{TaskText(verdict.Task{Instruction: long, Context: long}), ResultText(verdict.Result{Output: long, Error: long}), CallText(verdict.Call{Text: long})} {
		if len(s) > MaxText+1 {
			t.Errorf("%d bytes are encoded, at most %d were promised", len(s), MaxText)
		}
	}
}
