package floor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// changes returns how many changes a property test generates:
// DREAMGUARD_FLOOR_CHANGES, or a few by default.
func changes(t *testing.T) int {
	s := os.Getenv("DREAMGUARD_FLOOR_CHANGES")
	if s == "" && testing.Short() {
		return 400
	}
	if s == "" {
		return 4000
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("DREAMGUARD_FLOOR_CHANGES=%q: want a number", s)
	}
	return n
}

// No change that is permitted has a protected effect, by any reader.
func TestNoProtectedEffectPasses(t *testing.T) {
	f := Default()
	n, refused, permitted := changes(t), 0, 0
	for i := range n {
		g := gen{rand.New(rand.NewPCG(1, uint64(i)))}
		before := any(g.document())
		after := clone(before)
		g.hostile(&after)
		c, ok := g.change(t, before, after, true)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			refused++
			continue
		}
		permitted++
		was := effectsOf(before)
		var afters []any
		if c.Format != TOML { // which has no null: the text says less than the change
			afters = append(afters, after)
		}
		if c.Format.IsDocument() {
			afters = append(afters, readAs(c.Format, c.Text)...)
		}
		for _, v := range afters {
			if now := effectsOf(v); !kept(was, now) {
				t.Fatalf("change %d (%s) passes:\nbefore %s\nafter  %s\n%s\n---\n%s", i, c.Format, was, now, c.Before, c.Text)
			}
		}
	}
	t.Logf("%d changes: %d refused, %d permitted", n, refused, permitted)
	if refused < n/3 {
		t.Errorf("only %d of %d changes are refused: the generator is tame", refused, n)
	}
}

// Every change that touches no protected field passes.
func TestEveryHarmlessChangePasses(t *testing.T) {
	f := Default()
	for i := range changes(t) {
		g := gen{rand.New(rand.NewPCG(2, uint64(i)))}
		before := any(g.document())
		after := clone(before)
		g.harmless(&after)
		if effectsOf(before) != effectsOf(after) {
			t.Fatalf("change %d: the generator made a change that is not harmless", i)
		}
		// A patch that replaces the whole list of channels writes their allowFrom.
		lists := sameJSON(before.(object)["channels"], after.(object)["channels"])
		c, ok := g.change(t, before, after, lists)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			t.Fatalf("change %d (%s) is refused: %s %s\n%s\n---\n%s", i, c.Format, d.Rule, d.Reason, c.Before, c.Text)
		}
	}
}

// respell writes a key so that a lenient reader still takes it for the same.
func (g gen) respell(key string) string {
	switch g.IntN(6) {
	case 0:
		return strings.ToUpper(key)
	case 1:
		i := g.IntN(len(key) + 1)
		return key[:i] + pick(g, "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\ufe0f", "\u0301") + key[i:]
	case 2:
		i := g.IntN(len(key))
		if alts := []rune(imitations[strings.ToLower(key)[i]]); len(alts) > 0 {
			return key[:i] + string(alts[g.IntN(len(alts))]) + key[i+1:]
		}
	case 3:
		var b strings.Builder
		for _, r := range key {
			if r > ' ' && r < 0x7f {
				r += 0xfee0
			}
			b.WriteRune(r)
		}
		return b.String()
	case 4:
		return key + "\x00"
	}
	return key
}

// A protected path in any syntax and spelling is refused, whatever the value.
func TestEveryProtectedPathIsRefused(t *testing.T) {
	f := Default()
	for i := range changes(t) {
		g := gen{rand.New(rand.NewPCG(3, uint64(i)))}
		keys := pick(g, []string{"server", "host"}, []string{"server", "tokenEnv"}, []string{"tools", "policy", "deny"}, []string{"tools", "untrusted", "onMutate"},
			[]string{"channels", "0", "allowFrom"}, []string{"tools", "providers", "system", "writeRoots"}, []string{"a", "b", "writeRoots"}, []string{"allowFrom"})
		spelt := slices.Clone(keys)
		for k := range spelt {
			if _, err := strconv.Atoi(spelt[k]); err != nil {
				spelt[k] = g.respell(spelt[k])
			}
		}
		path := ""
		switch g.IntN(4) {
		case 0:
			for _, k := range spelt {
				path += "/" + k
			}
		case 1:
			path = strings.Join(spelt, ".")
		case 2:
			path = "$"
			for _, k := range spelt {
				path += fmt.Sprintf("[%q]", k)
			}
		default:
			for k, s := range spelt {
				switch {
				case g.IntN(2) == 0:
					path += "['" + s + "']"
				case k > 0:
					path += "." + s
				default:
					path += s
				}
			}
		}
		value := any("allow")
		if keys[len(keys)-1] != "onMutate" {
			value = g.value(1)
		}
		if d := f.Check(Write(path, value)); d.Outcome != Refuse {
			t.Fatalf("change %d: %q (%v) passes", i, path, keys)
		}
		// The same inside a value written to the first key.
		inner := any(value)
		for k := len(spelt) - 1; k > 0; k-- {
			if _, err := strconv.Atoi(spelt[k]); err == nil {
				inner = []any{inner}
			} else {
				inner = object{spelt[k]: inner}
			}
		}
		if len(spelt) > 1 {
			if d := f.Check(Write(spelt[0], inner)); d.Outcome != Refuse {
				t.Fatalf("change %d: %q = %v passes", i, spelt[0], inner)
			}
		}
	}
}

// The same configuration in any layout is no change.
func TestLayoutIsNoChange(t *testing.T) {
	f := Default()
	for i := range changes(t) / 2 {
		g := gen{rand.New(rand.NewPCG(4, uint64(i)))}
		doc := any(g.document())
		c, ok := g.change(t, doc, doc, false)
		if !ok {
			continue
		}
		if d := f.Check(c); d.Outcome != Permit {
			t.Fatalf("change %d (%s): %s\n%s\n---\n%s", i, c.Format, d.Reason, c.Before, c.Text)
		}
	}
}
