package floor

import "strings"

// refers reports whether a key brings content from elsewhere. Keys with a sign in
// front do so by convention anywhere; plain words only inside a block, where no
// configuration has another use for them.
func refers(skel string, at state) bool {
	if name := strings.TrimLeft(skel, "$@"); name != skel {
		return refWords[name]
	}
	if !includeWords[skel] {
		return false
	}
	for _, t := range at {
		if t.block > 0 {
			return true
		}
	}
	return false
}

var (
	includeWords = wordSet("include", "includes", "import", "imports", "extends")
	refWords     = wordSet("ref", "dynamicRef", "include", "includes", "import", "imports", "extends", "inherit", "merge", "patch", "spread")
)

func wordSet(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[skeleton(w)] = true
	}
	return m
}

// substitutes reports whether text is replaced by something else when a loader
// expands variables, templates or commands.
func substitutes(s string) bool {
	i := strings.IndexAny(s, "$%{<")
	if i < 0 {
		return false
	}
	for _, open := range []string{"${", "{{", "{%", "<%", "%{"} {
		if strings.Contains(s, open) {
			return true
		}
	}
	for at := s; ; { // $(NAME), as Kubernetes writes it
		_, rest, ok := strings.Cut(at, "$(")
		if !ok {
			break
		}
		if name, _, ok := strings.Cut(rest, ")"); ok && isName(name) {
			return true
		}
		at = rest
	}
	t := strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(t, "$"); ok {
		return isName(rest)
	}
	if rest, ok := strings.CutPrefix(t, "%"); ok {
		if name, ok := strings.CutSuffix(rest, "%"); ok {
			return isName(name)
		}
	}
	return false
}

// substitutesKey reports the same of a key, where a name such as $schema is only
// a name.
func substitutesKey(key string) bool {
	if name, ok := strings.CutPrefix(strings.TrimSpace(key), "$"); ok && isName(name) {
		return name == strings.ToUpper(name)
	}
	return substitutes(key)
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
