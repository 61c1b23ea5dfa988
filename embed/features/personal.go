package features

import (
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
var personalWords = wordSet(`name surname phone mobile telephone address street birth birthday dob age gender nationality religion
	iban account salary pay wage bonus income ssn tax passport licence license patient diagnosis medication allergy blood
	medical insurance password passwd pwd pin secret token key credential login card cvv mail email respondent
	customer client employee applicant candidate beneficiary contact reviewer home user sample`)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// personalIn counts the labelled personal values in s ("phone: +49 ...") whose
// label the task does not mention, and the values that have the shape of one
// (an e-mail address inside a text, a phone number, an IBAN, a long key) and do
// not stand in the task. It calls path for each path on the way.
func (t *Tracker) personalIn(l leaf, path func(name []byte, v token)) (labels, shapes int) {
	for line := range strings.SplitSeq(l.text, "\n") {
		if t.personalLabel(line) {
			labels++
		}
		if phoneNumber(line) {
			shapes++
		}
	}
	contact := isContactKey(l.key)
	values(l.text, &t.scratch.buf, func(kind valueKind, v []byte) {
		switch {
		case kind == valuePath:
			path(v, valueToken(kind, v))
		case (kind == valueEmail && !contact || kind == valueID && keyLike(v)) && t.values[valueToken(kind, v)]&inTask == 0:
			shapes++
		}
	})
	return labels, shapes
}

// personalLabel reports whether line reads "label: value" with a personal label.
func (t *Tracker) personalLabel(line string) bool {
	const longest = 48
	at := strings.IndexAny(line, ":=|\t")
	if dash := strings.Index(line, " - "); dash >= 0 && (at < 0 || dash < at) {
		at = dash + 1
	}
	if at <= 0 || at > longest || strings.TrimSpace(line[at+1:]) == "" {
		return false
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(line[:at]), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if personalWords[word] && !strings.Contains(t.taskText, word) {
			return true
		}
	}
	return false
}

// phoneNumber reports whether line holds a number in international form: + and
// 9 to 15 digits with blanks, dots, dashes or brackets among them.
func phoneNumber(line string) bool {
	for {
		at := strings.IndexByte(line, '+')
		if at < 0 {
			return false
		}
		line = line[at+1:]
		digits, i := 0, 0
	scan:
		for ; i < len(line); i++ {
			switch c := line[i]; {
			case c >= '0' && c <= '9':
				digits++
			case c == ' ' || c == '-' || c == '.' || c == '(' || c == ')':
			default:
				break scan
			}
		}
		if digits >= 9 && digits <= 15 {
			return true
		}
	}
}

// keyLike reports whether b, a lower-case id, is long and mixes letters and
// digits several times, as keys, tokens and account numbers do and words with a
// number do not.
func keyLike(b []byte) bool {
	if len(b) < 16 {
		return false
	}
	turns, letters, digits := 0, 0, 0
	for i, c := range b {
		d := c >= '0' && c <= '9'
		if d {
			digits++
		} else if c >= 'a' && c <= 'z' {
			letters++
		}
		if i > 0 && d != (b[i-1] >= '0' && b[i-1] <= '9') {
			turns++
		}
	}
	return digits >= 4 && (turns >= 4 || letters <= 4)
}

// personal fills the features about personal values in the arguments.
func (t *Tracker) personal(f *[count]float64) {
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
			if t.underTask(string(name)) {
				inside++
			}
		})
		labels, shapes = labels+a, shapes+b
	}
	f[personalLabels], f[personalShapes] = math.Log1p(float64(labels)), math.Log1p(float64(shapes))
	f[personalCarried] = bit(carried)
	f[personalLeaves] = f[isEffect] * bit(labels+shapes > 0 || carried)
	f[personalStranger] = f[personalLeaves] * bit(f[contactCount] > 0 && f[contactTask] < 1)
	if paths > 0 {
		f[pathScope] = inside / paths
		f[deleteOutside] = f[isDelete] * (1 - f[pathScope])
	}
}

// underTask reports whether path, or one of the folders it lies in, stands in
// the task.
func (t *Tracker) underTask(path string) bool {
	for !strings.Contains(t.taskText, path) {
		at := strings.LastIndexByte(path, '/')
		if at < 4 { // "/", "./" and the like lie above everything
			return false
		}
		path = path[:at]
	}
	return true
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
		t.valuesOf(l.text, func(kind valueKind, v token) {
			if kind == valuePath && len(t.private) < maxPersonal {
				t.private[v] = struct{}{}
			}
		})
	}
}
