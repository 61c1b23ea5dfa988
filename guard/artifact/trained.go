package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"maps"
	"slices"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/clean"
)

// FingerprintSize is the length of one run's digest in trained.bin, in bytes.
const FingerprintSize = 16

// MaxFingerprints is how many runs trained.bin can list.
const MaxFingerprints = maxTrained / FingerprintSize

// RunDigest identifies a run by its contents: 16 bytes of a sha256, in hex.
// Task, context and every step count; ids, labels and metadata do not. Texts are
// compared after the leak rules of package clean, which training applies, so that
// a run and its cleaned copy have one fingerprint.
func RunDigest(t *data.Trajectory) string {
	c := *t
	c.Steps, c.Extra = slices.Clone(t.Steps), maps.Clone(t.Extra) // what Apply changes
	clean.Apply(&c)
	h := sha256.New()
	put := func(s string) {
		var n [8]byte // the length keeps texts apart
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s) // a hash takes everything
	}
	put(c.Task)
	put(c.Context)
	for i := range c.Steps {
		s := &c.Steps[i]
		for _, text := range []string{s.Type, s.Tool, s.Args, s.Text, s.Result, s.Error} {
			put(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:FingerprintSize])
}

// PackFingerprints returns trained.bin: the distinct fingerprints in order.
// Strings that are no fingerprint are left out.
func PackFingerprints(list []string) []byte {
	list = slices.Clone(list)
	slices.Sort(list)
	var b bytes.Buffer
	for _, f := range slices.Compact(list) {
		if raw, err := hex.DecodeString(f); err == nil && len(raw) == FingerprintSize {
			b.Write(raw)
		}
	}
	return b.Bytes()
}

// TrainedOn returns the fingerprints of the runs that the model was trained on,
// nil if the artifact does not carry them.
func (a *Artifact) TrainedOn() map[string]struct{} {
	if a.Trained == nil {
		return nil
	}
	out := make(map[string]struct{}, len(a.Trained)/FingerprintSize)
	for b := a.Trained; len(b) >= FingerprintSize; b = b[FingerprintSize:] {
		out[hex.EncodeToString(b[:FingerprintSize])] = struct{}{}
	}
	return out
}
