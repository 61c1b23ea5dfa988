package audit

import (
	"crypto/sha256"
	"hash"

	"github.com/dreamguard/dreamguard/data"
)

const (
	bins    = 128 // values of a signature
	rows    = 8   // values of a band
	bands   = bins / rows
	shingle = 5 // words
)

// signature is a one-permutation MinHash: value i is the least hash that falls
// into bin i, and a borrowed one where none does.
type signature [bins]uint32

func (s *signature) band(i int) uint64 {
	h := uint64(fnvOffset)
	for _, v := range s[i*rows : (i+1)*rows] {
		h = mix(h ^ uint64(v))
	}
	return h
}

// similarity estimates the Jaccard similarity of the shingle sets, 0 to 1, with
// a standard error of at most 0.05.
func (s *signature) similarity(o *signature) float64 {
	n := 0
	for i, v := range s {
		if v == o[i] {
			n++
		}
	}
	return float64(n) / bins
}

// sketcher makes digests and signatures; it keeps buffers between runs.
type sketcher struct {
	words  []byte
	digest hash.Hash
}

func (k *sketcher) run(t *data.Trajectory) (digest [sha256.Size]byte, sig signature) {
	if k.digest == nil {
		k.digest = sha256.New()
	}
	k.digest.Reset()
	var least [bins]uint64 // the least hash per bin, plus one; 0 = empty
	var window [shingle]uint64
	n := 0
	put := func() {
		h := uint64(fnvOffset)
		for i := range window { // oldest word first
			h = mix(h ^ window[(n+i)%shingle])
		}
		bin := h % bins
		if v := h>>8 + 1; least[bin] == 0 || v < least[bin] {
			least[bin] = v
		}
	}
	parts(t, func(s string) {
		k.words = tokens(s, k.words, func(w []byte) {
			k.digest.Write(w)
			k.digest.Write([]byte{' '})
			window[n%shingle] = hash64(w)
			n++
			if n >= shingle {
				put()
			}
		})
		k.digest.Write([]byte{'\n'})
	})
	if n < shingle {
		put() // fewer words than one shingle: all of them
	}
	k.digest.Sum(digest[:0])
	for i := range sig {
		// An empty bin borrows from the bin that a fixed chain of hashes leads to,
		// the same in every signature, so that equal sets still agree.
		from := uint64(i)
		for try := uint64(1); least[from] == 0; try++ {
			from = mix(uint64(i)<<32|try) % bins
		}
		sig[i] = uint32(least[from]) ^ uint32(least[from]>>32)
	}
	return digest, sig
}
