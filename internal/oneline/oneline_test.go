package oneline_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/internal/oneline"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 5, ""},
		{" \n\t ", 5, ""},
		{"  two\r\n\twords ", 20, "two words"},
		{"exact", 5, "exact"},
		{"exactly", 5, "exac…"},
		{"exact  ", 5, "exact"},
		{"abcd e", 5, "abcd…"},
		{"ab", 1, "…"},
		{"a\x1b[31mred\x7f\u0085b", 20, "a [31mred b"},
		{"in\u202evoice\u200b\ufeff", 20, "invoice"},
		{"nach Köln", 8, "nach Kö…"},
		{"a\xffb", 5, "a\ufffdb"},
	} {
		if got := oneline.Of(c.in, c.n); got != c.want {
			t.Errorf("Of(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a b\n\x1b[0m\u202e", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 1 + int(uint(n)%50)
		got := oneline.Of(s, n)
		if utf8.RuneCountInString(got) > n || !utf8.ValidString(got) || strings.TrimLeft(got, " ") != got {
			t.Errorf("Of(%q, %d) = %q", s, n, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("Of(%q, %d) = %q holds %q", s, n, got, r)
			}
		}
	})
}

func ExampleOf() {
	fmt.Println(oneline.Of("Pay the bill\nand \x1b[8mtell nobody", 24))
	// Output: Pay the bill and [8mtel…
}
