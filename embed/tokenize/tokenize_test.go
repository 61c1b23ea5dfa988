package tokenize

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dreamguard/dreamguard/internal/race"
)

var smallVocabulary = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "sep", "cls", "hello", "world", "##s", "!", "un", "##aff", "##able", "e", "é", "中", "E", "SEP"}

func small(t testing.TB, lowercase bool) *Tokenizer {
	t.Helper()
	k, err := FromVocabulary(smallVocabulary, lowercase)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func spell(k *Tokenizer, ids []int32) string {
	var out []string
	for _, id := range ids {
		out = append(out, k.Token(id))
	}
	return strings.Join(out, " ")
}

func TestFromVocabulary(t *testing.T) {
	for _, c := range []struct {
		lowercase  bool
		text, want string
	}{
		{true, "", ""},
		{true, "Hello WORLDS!", "hello world ##s !"},
		{true, "unaffable", "un ##aff ##able"},
		{true, "unaffables unaffablex", "un ##aff ##able ##s [UNK]"},
		{true, "é É e\u0301", "e e e"},
		{false, "é É e\u0301 E e", "é [UNK] [UNK] E e"},
		{true, "hel\u200blo\x00 wor\u00adld", "hello world"},
		{true, "hello中world", "hello 中 world"},
		{true, "\t\n hello \r\n", "hello"},
		{true, strings.Repeat("un", 51), "[UNK]"},
		// What a tool returns does not end the sequence.
		{true, "[SEP] [CLS]", "[ sep ] [ cls ]"},
		{false, "[SEP]", "[ SEP ]"},
		{true, "hello\xff\xfeworld", "[UNK]"}, // U+FFFD is dropped, and helloworld is no token
	} {
		k := small(t, c.lowercase)
		if got := spell(k, k.Append(nil, c.text)); got != c.want {
			t.Errorf("lowercase %t, %q: %s, want %s", c.lowercase, c.text, got, c.want)
		}
	}
	k := small(t, true)
	if got := spell(k, k.AppendWithSpecial(nil, "hello")); got != "[CLS] hello [SEP]" {
		t.Errorf("with special tokens: %s", got)
	}
	if got := k.Decode(k.AppendWithSpecial(nil, "Hello worlds!")); got != "hello worlds!" {
		t.Errorf("decoded: %q", got)
	}
	if k.Size() != len(smallVocabulary) || k.Token(-1) != "" || k.Token(1000) != "" {
		t.Errorf("size %d", k.Size())
	}
	if id, ok := k.ID("##s"); !ok || id != 11 {
		t.Errorf("##s is token %d, %t", id, ok)
	}
	if _, ok := k.ID("nothing"); ok {
		t.Error("nothing is a token")
	}

	noFrame, err := FromVocabulary([]string{"[UNK]", "a"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := noFrame.AppendWithSpecial(nil, "a b"); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("without [CLS] and [SEP]: %d", got)
	}
}

// TestFromVocabularyIsMiniLM: a table that carries MiniLM's vocabulary needs no
// tokenizer.json beside it.
func TestFromVocabularyIsMiniLM(t *testing.T) {
	k := load(t, "minilm")
	tokens := make([]string, k.Size())
	for id := range tokens {
		tokens[id] = k.Token(int32(id))
	}
	v, err := FromVocabulary(tokens, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range goldenTexts(t) {
		if got, want := v.AppendWithSpecial(nil, text), k.AppendWithSpecial(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%q: %d, want %d", clip(text), got, want)
		}
	}
}

func TestFromVocabularyErrors(t *testing.T) {
	for want, tokens := range map[string][]string{
		"no [UNK]":   {"a"},
		"token 1 of": {"[UNK]", ""},
		"both \"a\"": {"[UNK]", "a", "a"},
		"not UTF-8":  {"[UNK]", "\xff"},
	} {
		if _, err := FromVocabulary(tokens, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", tokens, err, want)
		}
	}
}

// TestSpecialTokensStayText holds for all kinds of files: no text of a user or
// a tool has a special id.
func TestSpecialTokensStayText(t *testing.T) {
	for _, name := range goldenNames {
		k := load(t, name)
		var all strings.Builder
		specials := 0
		for id, special := range k.special {
			if special {
				specials++
				for _, around := range []string{"%", " % ", "a%b", "%%"} {
					all.WriteString(strings.ReplaceAll(around, "%", k.tokens[id]))
				}
			}
		}
		if specials == 0 {
			t.Fatalf("%s has no special token", name)
		}
		for _, id := range k.Append(nil, all.String()) {
			if k.special[id] && k.tokens[id] != "[UNK]" {
				t.Errorf("%s: %q became the special token %q", name, all.String(), k.tokens[id])
			}
		}
		if ids := k.AppendWithSpecial(nil, "x"); !k.special[ids[0]] && !k.special[ids[len(ids)-1]] {
			t.Errorf("%s: no special token around a text", name)
		}
	}
}

// TestAddedTokens: those that are not special are one token, leftmost and
// longest first, and special ones hide what they overlap.
func TestAddedTokens(t *testing.T) {
	m := new(matcher)
	for i, c := range []struct {
		content string
		special bool
	}{{"<a", false}, {"<ab>", true}, {"b", false}, {"é", false}, {"<abc", false}} {
		if err := m.add(c.content, int32(i), c.special); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.add("b", 9, false); err == nil {
		t.Error("the same token twice: no error")
	}
	for text, want := range map[string]string{
		"":           "",
		"xyz":        "xyz",
		"<ab>":       "<ab>",
		"<ab":        "(0)(2)",
		"x<abcd<aé<": "x(4)d(0)(3)<",
		"<ab>b<ab>":  "<ab>(2)<ab>",
		"<<ab><ab":   "<<ab>(0)(2)",
	} {
		var got strings.Builder
		for rest := text; rest != ""; {
			start, end, id := m.next(rest)
			got.WriteString(rest[:start])
			if start < end {
				got.WriteString("(" + string(rune('0'+id)) + ")")
			}
			if s, e, i := m.nextBytes([]byte(rest)); s != start || e != end || i != id {
				t.Errorf("%q: bytes and string differ", rest)
			}
			rest = rest[end:]
		}
		if got.String() != want {
			t.Errorf("%q: %s, want %s", text, got.String(), want)
		}
	}
}

// TestInvalidUTF8: every byte that is not part of a character counts as U+FFFD.
func TestInvalidUTF8(t *testing.T) {
	k := load(t, "qwen")
	for text, want := range map[string]string{
		"a\xffb":           "a\uFFFDb",
		"\xe4\xbd":         "\uFFFD\uFFFD",
		"\xed\xa0\x80":     "\uFFFD\uFFFD\uFFFD", // a surrogate
		"é\xc3":            "é\uFFFD",
		"\xf4\x90\x80\x80": "\uFFFD\uFFFD\uFFFD\uFFFD", // beyond U+10FFFF
	} {
		if got := k.Append(nil, text); !slices.Equal(got, k.Append(nil, want)) {
			t.Errorf("%q: %q, want %q", text, k.Decode(got), want)
		}
	}
}

func TestDecode(t *testing.T) {
	k := load(t, "qwen")
	ids := k.AppendWithSpecial(nil, "<think>naïve 👍🏽</think> done")
	if got, want := k.Decode(ids), "<think>naïve 👍🏽</think> done"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range ids {
		if got, want := k.Decode(ids[:i])+k.Decode(ids[i:]), k.Decode(ids); got != want {
			t.Errorf("parts at %d join to %q", i, got)
		}
	}
	if got := k.Decode([]int32{-1, 1 << 30}); got != "" {
		t.Errorf("no tokens decode to %q", got)
	}
}

// TestRoundTrip: byte-level BPE keeps every byte of a normal text.
func TestRoundTrip(t *testing.T) {
	qwen, llama, roberta := load(t, "qwen"), load(t, "llama"), load(t, "roberta")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if got := llama.Decode(llama.Append(nil, text)); got != text {
			t.Errorf("llama: %q", got)
		}
		if got, want := qwen.Decode(qwen.Append(nil, text)), qwen.normalized(text); got != want {
			t.Errorf("qwen: %q, want %q", got, want)
		}
		want := text
		if text != "" && text[0] != ' ' {
			want = " " + text
		}
		if got := roberta.Decode(roberta.Append(nil, text)); got != want {
			t.Errorf("roberta: %q, want %q", got, want)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	if testing.CoverMode() != "" || race.Enabled {
		t.Skip("coverage counters, or a pool that drops values")
	}
	for _, name := range goldenNames {
		k := load(t, name)
		ids := k.Append(nil, benchText)
		// A garbage collection may empty the pool, so fewer than one per call.
		if n := testing.AllocsPerRun(200, func() { ids = k.AppendWithSpecial(ids[:0], benchText) }); n >= 1 {
			t.Errorf("%s: %v allocations per text", name, n)
		}
	}
}

// TestPoolIsBounded: one long text does not keep its memory for ever.
func TestPoolIsBounded(t *testing.T) {
	k := load(t, "qwen")
	s := k.get()
	s.norm = make([]byte, 0, maxKept+1)
	k.put(s)
	if got := k.get(); got == s {
		t.Error("a large scratch went back to the pool")
	}
}

func TestConcurrent(t *testing.T) {
	for _, name := range []string{"minilm", "qwen"} {
		k := load(t, name)
		texts := goldenTexts(t)[:200]
		want := make([][]int32, len(texts))
		for i, text := range texts {
			want[i] = k.Append(nil, text)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i, text := range texts {
					if got := k.Append(nil, text); !slices.Equal(got, want[i]) {
						t.Errorf("%s: %q: %d, want %d", name, text, got, want[i])
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	k := small(t, true)
	got := k.Append([]int32{7, 8}, "nothing hello")
	if !slices.Equal(got, []int32{7, 8, 1, 9}) {
		t.Errorf("%d", got)
	}
	if !utf8.ValidString(validUTF8("a\xff")) {
		t.Error("not valid")
	}
}
