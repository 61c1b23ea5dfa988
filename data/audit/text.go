package audit

import (
	"unicode"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/data"
)

// parts calls f with every text of a run that stands for what happened, in
// order. Names, labels and ids are left out: they differ between copies.
func parts(t *data.Trajectory, f func(string)) {
	f(t.Task)
	f(t.Context)
	for i := range t.Steps {
		s := &t.Steps[i]
		f(s.Tool)
		f(s.Args)
		f(s.Text)
		f(s.Result)
		f(s.Error)
	}
}

// tokens calls f with the words of s, lower case: runs of letters and digits.
// The slice passed to f is valid until the next call.
func tokens(s string, buf []byte, f func([]byte)) []byte {
	buf = buf[:0]
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			buf = utf8.AppendRune(buf, unicode.ToLower(r))
			continue
		}
		if len(buf) > 0 {
			f(buf)
			buf = buf[:0]
		}
	}
	if len(buf) > 0 {
		f(buf)
	}
	return buf[:0]
}

// FNV-1a, 64 bits, and a finaliser (of MurmurHash3) that spreads it over all bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash64(b []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
