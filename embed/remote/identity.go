package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/dreamguard/dreamguard/embed"
)

// Version is part of the identity. It changes with every change of code that
// moves a vector or the sketch.
const Version = 1

// Tolerance is how many of the 224 bits of the sketch may differ between two
// answers of one model. A bit differs with probability (angle between the
// answers)/pi: arithmetic in 16 bits turns a vector by less than 0.02, which
// flips 1 or 2 bits in 224; a cosine of 0.99 flips 10.
const Tolerance = 6

const (
	settingsBytes = 4 // of the digest
	sketchBytes   = sha256.Size - settingsBytes
	sketchBits    = 8 * sketchBytes
)

// probes are what the sketch is made from. They differ in kind and language, so
// that another tokenizer, prompt or pooling moves some of them.
var probes = [...]string{
	"The quick brown fox jumps over the lazy dog.",
	"send_email {\"to\": \"ann@example.com\", \"subject\": \"Quarterly report\"}",
	"Überweisen Sie bitte 250 € auf das Konto der Bäckerei.",
	"def total(xs):\n    return sum(x for x in xs if x is not None)\n",
	"请把昨天的会议记录发给财务部门。",
	"ERROR 404: /var/log/app/2024-11-03.log not found, retry in 30 s",
	"What is the capital of Peru, and how many people live there?",
	"delete",
}

// settings returns the part of the digest that is compared exactly.
func (o *Options) settings(dims int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "dreamguard embed/remote version %d\nmodel %q\ndims %d\nprefix %q\nmax_bytes %d\n",
		Version, o.Model, dims, o.Prefix, o.MaxBytes))
	return sum[:settingsBytes]
}

// sketch returns the signs of random projections of the probes' vectors, which
// stand one after the other, and of the same vectors less their mean.
func sketch(vectors []float32, dims int) []byte {
	centred := make([]float64, len(vectors))
	n := len(vectors) / dims
	for j := range dims {
		var mean float64
		for i := range n {
			mean += float64(vectors[i*dims+j])
		}
		mean /= float64(n)
		for i := range n {
			centred[i*dims+j] = float64(vectors[i*dims+j]) - mean
		}
	}
	out := make([]byte, sketchBytes)
	rng := rand.NewPCG(0x6472_6561_6d67_7561, 0x7264_7265_6d6f_7465) // fixed: the sketch is compared between processes
	for b := range sketchBits {
		var sum float64
		var signs uint64
		for j := range vectors {
			if j%64 == 0 {
				signs = rng.Uint64()
			}
			x := float64(vectors[j])
			if b >= sketchBits/2 {
				x = centred[j]
			}
			if signs>>(j%64)&1 == 0 {
				x = -x
			}
			sum += x
		}
		if sum > 0 {
			out[b/8] |= 1 << (b % 8)
		}
	}
	return out
}

// Same reports whether two identities of remote encoders stand for one encoder:
// the same settings, and sketches within [Tolerance].
func Same(a, b embed.ID) bool {
	d, ok := distance(a, b)
	return ok && d <= Tolerance
}

// distance is the number of bits in which the sketches differ. ok is false where
// the encoders differ in anything else.
func distance(a, b embed.ID) (d int, ok bool) {
	if a.Kind != Kind || b.Kind != Kind || a.Name != b.Name || a.Dims != b.Dims {
		return 0, false
	}
	x, err1 := hex.DecodeString(a.Digest)
	y, err2 := hex.DecodeString(b.Digest)
	if err1 != nil || err2 != nil || len(x) != sha256.Size || len(y) != sha256.Size {
		return 0, false
	}
	if string(x[:settingsBytes]) != string(y[:settingsBytes]) {
		return 0, false
	}
	for i := settingsBytes; i < len(x); i++ {
		d += bits.OnesCount8(x[i] ^ y[i])
	}
	return d, true
}
