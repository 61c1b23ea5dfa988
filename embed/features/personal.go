package features

import (
	"bytes"
	"math"
	"strings"
)

const (
	maxPersonal = 256 // paths known to hold personal values
	maxPaths    = 64  // paths of one call that are looked up in the task
)

// personalWords label values that are about a person or open a door. Unlike
// secretKeys they say nothing about the file they stand in: what counts is that
// such a value stands in an outgoing text under its label.
var personalWords = func() map[token]bool {
	m := map[token]bool{}
	for w := range strings.FieldsSeq(`name surname phone mobile telephone address street birth birthday dob age gender nationality religion
		iban account salary pay wage bonus income ssn tax passport licence license patient diagnosis medication allergy blood
		medical insurance password pwd pin secret token key credential login card cvv email respondent
		customer client employee applicant candidate beneficiary contact reviewer home user sample`) {
		m[wordToken([]byte(w))] = true
	}
	return m
}()

// personalIn counts the labelled personal values in s ("phone: +49 ...") whose
// label the task does not mention, and the values that have the shape of one
// (an e-mail address inside a text, a phone number, an IBAN, a long key) and do
// not stand in the task. It calls path for each path on the way.
func (t *Tracker) personalIn(l leaf, path func(name []byte, v token)) (labels, shapes int) {
	for line := range strings.SplitSeq(l.text, "\n") {
		if t.personalLabel(line) {
			labels++
		}
	}
	unknown := func(v token) int {
		if t.seen.place(v)&inTask != 0 {
			return 0
		}
		return 1
	}
	phones(l.text, func(v token) { shapes += unknown(v) })
	contact := isContactKey(l.key)
	values(l.text, &t.scratch.buf, func(kind valueKind, v []byte) {
		switch {
		case kind == valuePath:
			path(v, valueToken(kind, v))
		case kind == valueEmail && !contact || kind == valueID && keyLike(v):
			shapes += unknown(valueToken(kind, v))
		}
	})
	return labels, shapes
}

// personalLabel reports whether line reads "label: value" with a personal word
// in the label that is not a word of the task.
func (t *Tracker) personalLabel(line string) bool {
	const longest = 48
	head := line[:min(len(line), longest+1)]
	at := strings.IndexAny(head, ":=|\t")
	if dash := strings.Index(head, " - "); dash >= 0 && (at < 0 || dash < at) {
		at = dash + 1
	}
	if at <= 0 || strings.TrimSpace(line[at+1:]) == "" {
		return false
	}
	found := false
	t.scratch.tok.emit = func(tk token, _ []byte) { found = found || personalWords[tk] && !t.ofTask(tk) }
	t.scratch.tok.words(line[:at])
	return found
}

// phones calls emit for each number in international form in s: + and 9 to 15
// digits with blanks, dots, dashes or brackets among them. Numbers in national
// form are not told from other digits.
func phones(s string, emit func(token)) {
	var number [15]byte
	for {
		at := strings.IndexByte(s, '+')
		if at < 0 {
			return
		}
		s = s[at+1:]
		digits, i := 0, 0
	scan:
		for ; i < len(s); i++ {
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				if digits < len(number) {
					number[digits] = c
				}
				digits++
			case c == ' ' || c == '-' || c == '.' || c == '(' || c == ')':
			default:
				break scan
			}
		}
		if digits >= 9 && digits <= len(number) {
			emit(valueToken(valueID, number[:digits]))
		}
		s = s[i:]
	}
}

// keyLike reports whether b, a lower-case id, is long and has a part that mixes
// letters and digits several times, as keys and tokens do and words with a
// number do not, or is little but digits, as account numbers are. UUIDs, digests of 40 and 64 hexadecimal digits, and dates with
// a time name things rather than open them.
func keyLike(b []byte) bool {
	if len(b) < 16 || isDate(b) || isUUID(b) || (len(b) == 40 || len(b) == 64) && isHex(b) {
		return false
	}
	letters, digits := 0, 0
	run, turns, random := 0, 0, false // of the part between separators
	for i, c := range b {
		d := classes[c] == digit
		switch {
		case d:
			digits++
		case c >= 'a' && c <= 'z':
			letters++
		default:
			run, turns = 0, 0
			continue
		}
		if run > 0 && d != (classes[b[i-1]] == digit) {
			turns++
		}
		run++
		random = random || run >= 12 && turns >= 3
	}
	return random || digits >= 8 && letters <= 4
}

func isHex(b []byte) bool {
	for _, c := range b {
		if classes[c] != digit && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isUUID reports whether b has the form 8-4-4-4-12 of RFC 9562.
func isUUID(b []byte) bool {
	return len(b) == 36 && b[8] == '-' && b[13] == '-' && b[18] == '-' && b[23] == '-' &&
		isHex(b[:8]) && isHex(b[9:13]) && isHex(b[14:18]) && isHex(b[19:23]) && isHex(b[24:])
}

// isDate reports whether b begins with a date of ISO 8601: 2026-03-01.
func isDate(b []byte) bool {
	return len(b) >= 10 && b[4] == '-' && b[7] == '-' && isDigits(b[:4]) && isDigits(b[5:7]) && isDigits(b[8:10])
}

// personal fills the features about personal values in the arguments. The call
// has a receiver that the task does not name if stranger.
func (t *Tracker) personal(f *[count]float64, stranger bool) {
	labels, shapes := 0, 0
	carried := false
	var paths, inside float64
	for _, l := range t.scratch.leaves {
		a, b := t.personalIn(l, func(name []byte, v token) {
			if paths == maxPaths {
				return
			}
			_, held := t.private[v]
			carried = carried || held
			paths++
			if t.inTaskScope(name) {
				inside++
			}
		})
		labels, shapes = labels+a, shapes+b
	}
	f[personalLabels], f[personalShapes] = math.Log1p(float64(labels)), math.Log1p(float64(shapes))
	f[personalCarried] = bit(carried)
	f[personalLeaves] = f[isEffect] * bit(labels+shapes > 0 || carried)
	f[personalStranger] = f[personalLeaves] * bit(stranger)
	if paths > 0 {
		f[pathScope] = inside / paths
		f[deleteOutside] = f[isDelete] * (1 - f[pathScope])
	}
}

// addScope makes the path of a user's turn, and where it names a file the folder
// of that file, a folder that calls may work in.
func (t *Tracker) addScope(path []byte) {
	t.addValue(valueToken(valuePath, path), inScope)
	slash := bytes.LastIndexByte(path, '/')
	// Above "/home", "c:/users" or "src" lies too much for a file in it to open it all.
	if isFile(path[slash+1:]) && slash > 0 && bytes.IndexByte(bytes.TrimPrefix(path[1:slash], []byte(":/")), '/') >= 0 {
		t.addValue(valueToken(valuePath, path[:slash]), inScope)
	}
}

// isFile reports whether a name ends as files do: in a dot and up to five letters
// and digits, a letter first (a.tar.gz, but not v1.2 nor conf.d).
func isFile(name []byte) bool {
	dot := bytes.LastIndexByte(name, '.')
	if dot <= 0 || len(name)-dot < 2 || len(name)-dot > 6 || classes[name[dot+1]] != lower || string(name[dot:]) == ".d" {
		return false
	}
	for _, c := range name[dot+1:] {
		if classes[c] != lower && classes[c] != digit {
			return false
		}
	}
	return true
}

// inTaskScope reports whether path, or a folder that it lies in, is one of
// addScope's.
func (t *Tracker) inTaskScope(path []byte) bool {
	h := uint64(fnvOffset)
	for i, c := range path {
		if c == '/' && i > 0 && t.seen.place(token(h)&^numericBit)&inScope != 0 {
			return true
		}
		h = (h ^ uint64(c)) * fnvPrime
	}
	return t.seen.place(token(h)&^numericBit)&inScope != 0
}

// keepPersonal remembers the paths of a call that carries personal values.
func (t *Tracker) keepPersonal() {
	found := false
	for _, l := range t.scratch.leaves {
		labels, shapes := t.personalIn(l, func(_ []byte, v token) {
			_, held := t.private[v]
			found = found || held // a copy, or an archive of it
		})
		found = found || labels+shapes > 0
	}
	if !found {
		return
	}
	for _, l := range t.scratch.leaves {
		t.scratch.valuesOf(l.text, func(kind valueKind, v token) {
			if kind == valuePath && len(t.private) < maxPersonal {
				t.private[v] = struct{}{}
			}
		})
	}
}
