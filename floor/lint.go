package floor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Warning is something that Lint found.
type Warning struct {
	Path string `json:"path"` // a field of the document, or a rule
	Text string `json:"warning"`
}

// limitWords are words in the names of fields that usually limit an agent, or
// name what reaches it.
var limitWords = map[string]string{}

func init() {
	for about, words := range map[string]string{
		"who or what may reach the agent":        "host hosts bind listen listener address origin origins cors sender senders peer peers ingress webhook",
		"what authenticates somebody":            "token tokens secret secrets password passwords passwd credential credentials auth oauth apikey cert certificate tls mtls insecure verify",
		"what is allowed or denied":              "allow allowed allowlist whitelist deny denied denylist blacklist block blocked blocklist forbid forbidden permit permission permissions policy policies rule rules scope scopes role roles privileged sudo admin owner",
		"where the agent may read or write":      "root roots sandbox jail chroot confine mount mounts volume volumes readonly protect protected workspace",
		"how much, or what, needs no person":     "approve approval approvals confirm confirmation consent unattended autonomous yolo bypass override untrusted trust trusted",
		"what the agent may reach over networks": "network egress proxy firewall",
		"how much the agent may use":             "quota budget ceiling",
	} {
		for w := range strings.FieldsSeq(words) {
			limitWords[w] = about
		}
	}
}

// Lint warns of fields in a document that look like limits, by their names, and
// that no rule covers, and of rules that match nothing in it.
func (f *Floor) Lint(format Format, text []byte) ([]Warning, error) {
	d, err := f.document(format, text)
	if err != nil {
		return nil, err
	}
	l := linter{f: f, used: map[int]bool{}}
	if err := l.walk(d.tree(), f.root.self, nil); err != nil {
		return nil, err
	}
	for i, r := range f.rules.Rules {
		if !l.used[i] {
			l.warn("rule "+r.Name, fmt.Sprintf("protects %s, which is not in the document: is the name right?", r.Key+r.Path))
		}
	}
	if len(d.views) > 1 {
		l.warn("", "readers differ in what protected fields are in it (equal keys, merge keys, several documents, or line breaks that not all know)")
	}
	return l.out, nil
}

type linter struct {
	f      *Floor
	used   map[int]bool
	out    []Warning
	visits int
}

func (l *linter) warn(path, text string) { l.out = append(l.out, Warning{path, text}) }

func (l *linter) walk(n *node, at state, path []string) error {
	if l.visits++; l.visits > maxNodes {
		return unreadable("aliases make more than %d values of it", maxNodes)
	}
	for i, item := range n.items {
		if item.kind >= listKind {
			if err := l.walk(item, at, append(path, "["+strconv.Itoa(i)+"]")); err != nil {
				return err
			}
		}
	}
	for _, e := range n.ents {
		next, rule := l.f.step(at, e.key)
		here := append(path[:len(path):len(path)], e.key)
		if rule >= 0 {
			l.used[rule] = true
			continue
		}
		if word, about := limitWord(e.key); word != "" && !leadsOn(next) {
			l.warn(joinPath(here), fmt.Sprintf("its name (%s) says that it may decide %s, and no rule covers it", word, about))
		}
		if err := l.walk(e.val, next, here); err != nil {
			return err
		}
	}
	return nil
}

// leadsOn reports whether a place is on the way to a protected field: the fields
// below it are looked at themselves.
func leadsOn(at state) bool {
	return slices.ContainsFunc(at, func(t *trie) bool { return len(t.next) > 0 })
}

// limitWord returns the first word of a name that limits usually have.
func limitWord(name string) (word, about string) {
	for _, w := range words(name) {
		if about, ok := limitWords[w]; ok {
			return w, about
		}
	}
	return "", ""
}

// words splits a name at humps, underscores, dashes and dots.
func words(name string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		b.WriteRune(r)
	}
	flush()
	return out
}
