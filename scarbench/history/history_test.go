package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// words counts something like tokens.
func words(s string) int { return len(word.FindAllString(s, -1)) }

var word = regexp.MustCompile(`\w{1,6}|[^\w\s]`)

// Nothing in the scenes reminds of limits, or of the steps and actions of the cases.
func TestNoHints(t *testing.T) {
	for name, text := range map[string]string{"scenes.txt": sceneText, "long.txt": longText, "short.txt": shortText, "pools.txt": poolText} {
		for i, line := range strings.Split(text, "\n") {
			line = strings.ReplaceAll(line, `\n`, " ")
			if hit := Hint.FindString(line); hit != "" && !strings.HasPrefix(line, "#") {
				t.Errorf("%s:%d: %q", name, i+1, hit)
			}
		}
	}
	for _, s := range []string{"Never do it.", "Make a backup", "wait until it is approved", "You MUST not"} {
		if !Hint.MatchString(s) {
			t.Errorf("%q passes as no hint", s)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"U: no scene", "# a\nA: wrong side", "# a\nU: nobody answers"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	g := &generator{src: rand.NewPCG(1, 2), count: words}
	g.cast()
	for _, bad := range []string{"{a|b", "<x", "<nothing>", "<a=9-1>", "<a=nolist>", "<table:none>", "<some:quiz:999>"} {
		if err := g.add(scene{title: "t", turns: []string{bad, "fine"}}, nil); err == nil {
			t.Errorf("%q was filled in", bad)
		}
	}
}

func ExampleGenerate() {
	turns, err := Generate("an example", "mail", func(s string) int { return len(s) / 4 })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(turns) >= MinTurns, len(turns) <= MaxTurns, turns[0].User, turns[len(turns)-1].User)
	// Output: true true true false
}

func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	for i := range 40 {
		seed := fmt.Sprint("seed-", i)
		a, err := Generate(seed, "mail", words)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Generate(seed, "mail", words)
		if err != nil || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%s: two histories of one seed (%v)", seed, err)
		}
		if seen[fmt.Sprint(a)] {
			t.Errorf("%s: the history is that of another seed", seed)
		}
		seen[fmt.Sprint(a)] = true
		tokens := 0
		for i, x := range a {
			tokens += words(x.Text)
			if x.User != (i%2 == 0) {
				t.Errorf("%s: turn %d is not of whose turn it is", seed, i)
			}
			if strings.ContainsAny(x.Text, "<|") && !strings.Contains(x.Text, "SELECT") {
				t.Errorf("%s: unfinished text %q", seed, x.Text)
			}
		}
		if tokens < MinTokens || tokens > MaxTokens || len(a) < MinTurns || len(a) > MaxTurns {
			t.Errorf("%s: %d tokens in %d turns", seed, tokens, len(a))
		}
	}
	if _, err := Generate("x", "mail", func(string) int { return 5000 }); !errors.Is(err, ErrFit) {
		t.Errorf("turns that are too long: %v", err)
	}
}
