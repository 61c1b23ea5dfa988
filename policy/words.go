package policy

import (
	"strings"
	"unicode"
)

// stem maps a noun to what its singular, plural and common synonyms share.
func stem(w string) string {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "'")
	if s, ok := synonyms[w]; ok {
		return s
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "xes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is") && len(w) > 3:
		w = w[:len(w)-1]
	}
	if s, ok := synonyms[w]; ok {
		return s
	}
	return w
}

// synonyms maps words to the first of their group.
var synonyms = map[string]string{}

func init() {
	for _, line := range []string{
		"email mail e-mail mails emails e-mails inbox mailbox",
		"file document doc files documents docs",
		"folder directory dir folders directories",
		"database db databases dbs schema",
		"production prod live",
		"staging stage",
		"development dev",
		"server host machine vm instance node servers hosts machines vms instances nodes",
		"backup snapshot dump backups snapshots dumps",
		"event meeting appointment events meetings appointments calendar",
		"record row entry records rows entries",
		"picture photo image pictures photos images",
		"user account users accounts",
		"customer client customers clients",
		"supplier vendor suppliers vendors",
		"repository repo repositories repos",
		"payment transfer payments transfers",
		"money fund funds",
		"bill invoice bills invoices",
		"setting config configuration settings configs",
		"message text messages texts sms chat",
		"ticket issue tickets issues",
		"key secret credential password token keys secrets credentials passwords tokens",
		"drive disk volume drives disks volumes",
		"website site page websites sites pages",
	} {
		f := strings.Fields(line)
		for _, w := range f {
			synonyms[w] = f[0]
		}
	}
}

// contrasts are groups of which a thing has one.
var contrasts = map[string]int{}

func init() {
	for i, line := range []string{
		"production staging development test sandbox demo qa",
		"nightly hourly daily weekly monthly yearly",
		"draft final", "old new", "internal external", "public private", "active inactive archived",
	} {
		for _, w := range strings.Fields(line) {
			contrasts[stem(w)] = i + 1
		}
	}
}

// generic words say nothing about which object is meant.
var generic = set(`anything anyone anybody everything everyone everybody something someone nothing nobody none all any each every the a an of in on at to
from with for by and or my our your their his her its this that these those it them me us you i we who which is are was were be been being has have had
new_ thing things stuff item items object objects ones one other others data only into onto within inside about related under no not any more person people
there here case as than`)

// typical objects of an action, which its tools need not name.
var typical = map[class]map[string]bool{
	"pay":    stems("money payment bill invoice expense amount cost fund transfer purchase refund share cash euro dollar vendor supplier"),
	"send":   stems("email message mail text reply invitation reminder"),
	"share":  stems("post information document article content"),
	"call":   stems("call number"),
	"deploy": stems("build app application service code change update version release deploy"),
	"merge":  stems("branch code pull request change"),
	"push":   stems("code commit change"),
	"grant":  stems("access permission right role"),
	"use":    {},
}

func stems(list string) map[string]bool {
	out := map[string]bool{}
	for _, f := range strings.Fields(list) {
		out[stem(f)] = true
	}
	return out
}

// splitWords cuts a name or text into lower-case words: at separators and where a
// capital follows a small letter.
func splitWords(s string, yield func(string)) {
	start := -1
	var last rune
	emit := func(end int) {
		if start >= 0 {
			yield(strings.ToLower(s[start:end]))
		}
		start = -1
	}
	for i, r := range s {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case !letter:
			emit(i)
		case start < 0:
			start = i
		case unicode.IsUpper(r) && unicode.IsLower(last):
			emit(i)
			start = i
		}
		last = r
	}
	emit(len(s))
}

// prepositions end the core of an object phrase.
var prepositions = set(`in on at to from with for by of about outside inside within into onto under over between against except without that which who whose
where related regarding concerning during after before than like via through as below above exceeding`)

// phrase is an object phrase, ready to be looked for in calls.
type phrase struct {
	words  []string // stems that say which object is meant
	head   string   // the noun of its core, "" where nothing is said
	values []target
}

func newPhrase(text string, values []string) phrase {
	var p phrase
	known := map[string]bool{}
	for _, v := range values {
		p.values = append(p.values, newTarget(v))
		splitWords(v, func(w string) { known[w] = true })
	}
	core := true
	for _, f := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '"' }) {
		if prepositions[f] {
			core = core && p.head == ""
			continue
		}
		splitWords(strings.TrimSuffix(f, "'s"), func(w string) {
			if known[w] || generic[w] || len(w) < 2 {
				return
			}
			w = stem(w)
			p.words = append(p.words, w)
			if core {
				p.head = w
			}
		})
	}
	if p.head == "" && len(p.words) > 0 {
		p.head = p.words[len(p.words)-1]
	}
	return p
}
