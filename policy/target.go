package policy

import (
	"path"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// target is one thing that an action is about, normalised.
type target struct {
	text   string // normalised, letter case kept
	folded string // in lower case
	path   bool
	glob   bool
	lo, hi int64 // a range of numbers, or one number, where ranged
	ranged bool
	prefix string // what stands before the number: "inv-" in inv-300
}

// normal undoes differences of spelling that mean nothing: Unicode forms,
// invisible characters, quotes and spaces around, "./", "//" and a slash at the
// end of paths.
func normal(s string) string {
	if !ascii(s) {
		s = norm.NFKC.String(s)
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, s)
	}
	s = strings.Trim(strings.TrimSpace(s), "\"'`<>")
	s = strings.TrimPrefix(s, "mailto:")
	if rest, ok := strings.CutPrefix(s, "file://"); ok {
		s = rest
	}
	if len(s) > 2 && s[1] == ':' && s[2] == '\\' || strings.HasPrefix(s, `\\`) || strings.Contains(s, `\`) && !strings.Contains(s, "/") {
		s = strings.ReplaceAll(s, `\`, "/")
	}
	if strings.Contains(s, "/") && !strings.Contains(s, "://") {
		s = path.Clean(s)
	}
	return s
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func newTarget(raw string) target {
	t := target{text: normal(raw)}
	t.folded = strings.ToLower(t.text)
	t.glob = strings.ContainsAny(t.text, "*?[")
	t.path = strings.Contains(t.text, "/") && !strings.ContainsAny(t.text, " @")
	t.parseRange()
	return t
}

// parseRange reads "12", "300-340", "inv-7", "7..9".
func (t *target) parseRange() {
	s := strings.ReplaceAll(strings.ReplaceAll(t.folded, "–", "-"), "..", "-")
	if t.path || t.glob || len(s) > 60 || strings.Count(s, ".") > 1 {
		return
	}
	i := strings.IndexFunc(s, unicode.IsDigit)
	if i < 0 {
		return
	}
	prefix, rest := strings.TrimRight(s[:i], " -#_"), s[i:]
	low, high, two := strings.Cut(rest, "-")
	a, err := strconv.ParseInt(strings.TrimSpace(low), 10, 64)
	if err != nil {
		return
	}
	b := a
	if two {
		high = strings.TrimSpace(high)
		high = strings.TrimLeft(strings.TrimPrefix(high, prefix), " -#_")
		if b, err = strconv.ParseInt(high, 10, 64); err != nil || b < a {
			return
		}
	}
	t.lo, t.hi, t.ranged, t.prefix = a, b, true, prefix
}

// covers reports whether an action on t is one on all of o: they are equal, o
// lies in the folder, range or pattern t. With loose, letter case does not
// matter and the end of a longer path counts, which suits prohibitions; without,
// only what is certainly the same counts, which suits permission.
func (t target) covers(o target, loose bool) bool {
	a, b := t.text, o.text
	if loose {
		a, b = t.folded, o.folded
	}
	switch {
	case a == "" || b == "":
		return false
	case a == b:
		return true
	case t.path || strings.Contains(a, "/"):
		if t.glob {
			return globCovers(a, b)
		}
		if strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/") {
			return true
		}
		return loose && strings.Contains("/"+b+"/", "/"+strings.Trim(a, "/.~")+"/") && strings.Trim(a, "/.~") != ""
	case t.glob:
		return globCovers(a, b)
	case t.ranged && o.ranged:
		same := t.prefix == o.prefix || t.prefix == "" && loose || o.prefix == "" && loose
		return same && t.lo <= o.lo && o.hi <= t.hi
	case strings.HasPrefix(a, "@") && strings.Contains(b, "@"):
		return strings.HasSuffix(b, a)
	case strings.Contains(b, "/") && !strings.Contains(a, "/"): // a bare file or folder name
		return loose && strings.Contains("/"+b+"/", "/"+a+"/")
	}
	return false
}

// touches reports whether actions on t and o can meet: one covers the other, or
// their ranges overlap.
func (t target) touches(o target) bool {
	if t.covers(o, true) || o.covers(t, true) {
		return true
	}
	if t.ranged && o.ranged && (t.prefix == o.prefix || t.prefix == "" || o.prefix == "") {
		return t.lo <= o.hi && o.lo <= t.hi
	}
	return false
}

// globCovers matches a pattern against a name or, element by element, a path;
// "**" stands for any number of elements.
func globCovers(pattern, name string) bool {
	if strings.ContainsAny(name, "*?[") {
		// A pattern inside another: only what its fixed beginning shows.
		fixed := strings.TrimRight(pattern, "*")
		return !strings.ContainsAny(fixed, "*?[") && strings.HasPrefix(name, fixed)
	}
	if ok, _ := path.Match(pattern, name); ok {
		return true
	}
	if head, tail, ok := strings.Cut(pattern, "**"); ok {
		if !strings.HasPrefix(name, head) {
			return false
		}
		tail = strings.TrimPrefix(tail, "/")
		if tail == "" {
			return true
		}
		ok, _ := path.Match(tail, path.Base(name))
		return ok
	}
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(name))
		return ok
	}
	// What lies below a matched folder is matched with it.
	for dir := path.Dir(name); len(dir) > 1; dir = path.Dir(dir) {
		if ok, _ := path.Match(pattern, dir); ok {
			return true
		}
	}
	return false
}
