package tokenize

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
	"pgregory.net/rapid"
)

// TestPropertiesTable checks what the code takes for granted about the table.
func TestPropertiesTable(t *testing.T) {
	p := chars()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		c := p.class(r)
		if c&(classMark|classNonstarter) != 0 && c&classLower != 0 {
			t.Errorf("U+%04X is a mark or a nonstarter and has a lower case: order before lower case matters", r)
		}
		if c&classNonstarter != 0 && c&(classWhite|classPunct|classHan|classControl) != 0 {
			t.Errorf("U+%04X is a nonstarter and ends a word", r)
		}
		if c&classDecomposes != 0 {
			for i, q := range p.appendDecomposed(nil, r) {
				d := p.class(q)
				if d&classDecomposes != 0 {
					t.Errorf("U+%04X decomposes into U+%04X, which decomposes", r, q)
				}
				if i == 0 && c&classUnstable == 0 && d&(classSecond|classNonstarter) != 0 {
					t.Errorf("U+%04X begins with U+%04X, which may compose backwards: isNFC misses that", r, q)
				}
			}
		}
		if n := c & (classLetter | classNumber | classSpace); n&(n-1) != 0 {
			t.Errorf("U+%04X is two of letter, number and white space", r)
		}
	}
	for pair, r := range p.compose {
		if got, ok := p.composed(pair[0], pair[1]); !ok || got != r {
			t.Errorf("U+%04X does not compose", r)
		}
	}
	if got := p.appendDecomposed(nil, '각'); string(got) != "\u1100\u1161\u11a8" {
		t.Errorf("각 decomposes to %q", string(got))
	}
	// Two that tell the versions apart: the normaliser's tables (Unicode 9) do
	// not know a mark of Unicode 10, the patterns' tables know a letter of 15.
	if p.class(0x1133B)&classNonstarter != 0 || !unicode.Is(unicode.Mn, 0x1133B) {
		t.Error("U+1133B is a nonstarter: the table is not the reference's")
	}
	if p.class(0x31350)&classLetter == 0 {
		t.Error("U+31350 is no letter: the table is not the reference's")
	}
}

func TestReadProperties(t *testing.T) {
	for text, want := range map[string]string{
		"41":                    "before the first section",
		"[nothing]":             "unknown section",
		"[white]\nxyz":          `"xyz"`,
		"[white]\n110000":       "no character",
		"[white]\n1-2-3":        `"1-2-3"`,
		"[lower]\n41-5A":        "no distance",
		"[lower]\n41-5A/0+20":   "bad step",
		"[lower]\n41-5A/1+":     `"41-5A/1+"`,
		"[lower]\n=41":          `"=41"`,
		"[class]\n300=G":        `"300=G"`,
		"[class]\n300=100":      `"300=100"`,
		"[decompose]\nC0=1+2+3": "two parts",
		"[decompose]\nC0":       `"C0"`,
	} {
		if _, err := readProperties(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestNFC compares with golang.org/x/text on characters that both know:
// normalisation of an assigned character never changes.
func TestNFC(t *testing.T) {
	known := rangetable.Assigned("9.0.0")
	if known == nil {
		t.Fatal("no table of what Unicode 9 assigned")
	}
	p := chars()
	var interesting []rune
	for r := rune(0x80); r < 0x30000; r++ {
		if p.class(r)&(classNonstarter|classSecond|classDecomposes) != 0 && unicode.Is(known, r) && !isHangul(r) {
			interesting = append(interesting, r)
		}
	}
	char := rapid.OneOf(rapid.SampledFrom(interesting), rapid.RuneFrom(nil, known), rapid.RuneFrom([]rune("aeiouAE가각\u1100\u1161\u11a8\u1175")))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(char).Draw(t, "text")
		k := Tokenizer{nfc: true}
		got := k.normalized(text)
		if want := norm.NFC.String(text); got != want {
			t.Errorf("%+q, want %+q", got, want)
		}
		if again := k.normalized(got); again != got {
			t.Errorf("%+q becomes %+q", got, again)
		}
	})
}

// TestStripAccents does the same for BertNormalizer: decomposition without
// marks, then lower case.
func TestStripAccents(t *testing.T) {
	n := Tokenizer{bert: newBertNormalizer(true, true, true, true)}
	for text, want := range map[string]string{
		"ÀÉÎõü Ångström":              "aeiou angstrom",
		"İI":                          "ii",
		"ﬁ ß ẞ":                       "ﬁ ß ß",
		"한글":                          "\u1112\u1161\u11ab\u1100\u1173\u11af",
		"a\u0301\u0316b":              "ab",
		"\u302e\u3099 \u302e\u302a":   "\u302e \u302e",
		"中a文":                         " 中 a 文 ",
		"a\tb\u00a0c\u2028d":          "a b c d",
		"\x00\x01\ufffd\u200b\ue000x": "x",
		"豈":                           " 豈 ",
	} {
		if got := n.normalized(text); got != want {
			t.Errorf("%+q: %+q, want %+q", text, got, want)
		}
	}
	plain := Tokenizer{bert: newBertNormalizer(false, false, false, true)}
	if got, want := plain.normalized("İÀ\x00中\u00a0"), "i\u0307à\x00中\u00a0"; got != want {
		t.Errorf("only lower case: %+q, want %+q", got, want)
	}
}
