package tokenize

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func pieces(sp splitter, text string) (out []string) {
	for text != "" {
		end := sp.end(chars(), []byte(text))
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}

// TestSplit shows what tells the patterns apart; that they split as the
// reference does is what the golden ids say.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text                string
		gpt2, qwen2, llama3 string
	}{
		{"it's IT'S", "it|'s| IT|'|S", "it|'s| IT|'S", "it|'s| IT|'S"},
		{"we'Re 'ſ", "we|'|Re| '|ſ", "we|'Re| '|ſ", "we|'Re| '|ſ"},
		{"'ſ", "'|ſ", "'ſ", "'ſ"},
		{"a 12345", "a| 12345", "a| |1|2|3|4|5", "a| |123|45"},
		{"(word) -x", "(|word|)| -|x", "(word|)| -|x", "(word|)| -|x"},
		{"a  b", "a| | b", "a| | b", "a| | b"},
		{"a\tb", "a|\t|b", "a|\tb", "a|\tb"},
		{"a \n b", "a| \n| b", "a| \n| b", "a| \n| b"},
		{"a\n\nb", "a|\n|\n|b", "a|\n\n|b", "a|\n\n|b"},
		{"!\n\nb", "!|\n|\n|b", "!\n\n|b", "!\n\n|b"},
		{"a  ", "a|  ", "a|  ", "a|  "},
		{" \r\n  x", " \r\n | x", " \r\n| | x", " \r\n| | x"},
		{"é2 ", "é|2| ", "é|2| ", "é|2| "},
		{"e\u0301x", "e|\u0301|x", "e|\u0301x", "e|\u0301x"},
	} {
		for sp, want := range map[splitter]string{splitGPT2: c.gpt2, splitQwen2: c.qwen2, splitLlama3: c.llama3} {
			if got := pieces(sp, c.text); !slices.Equal(got, strings.Split(want, "|")) {
				t.Errorf("pattern %d, %q: %q, want %q", sp, c.text, got, want)
			}
		}
	}
	if got := pieces(splitNone, "a b"); !slices.Equal(got, []string{"a b"}) {
		t.Errorf("no pattern: %q", got)
	}
}

// TestSplitCovers: the pieces are the text, and none is empty.
func TestSplitCovers(t *testing.T) {
	char := rapid.OneOf(rapid.SampledFrom([]rune("'sSſtreEvlLm \t\r\n\u00a01²٣aé!_中")), rapid.Rune())
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(char).Draw(t, "text")
		for _, sp := range []splitter{splitNone, splitGPT2, splitQwen2, splitLlama3} {
			for rest := text; rest != ""; {
				end := sp.end(chars(), []byte(rest))
				if end <= 0 || end > len(rest) {
					t.Fatalf("pattern %d: piece of %d bytes of %q", sp, end, rest)
				}
				rest = rest[end:]
			}
		}
	})
}
