// Package embed defines how text becomes vectors. It does no I/O: encoders live
// in their own packages (hash, static, transformer, remote), the cache in
// embed/cache, and the call features that do not need an encoder in
// embed/features.
//
//	var enc embed.Encoder = hash.New(256)
//	dst := make([]float32, 2*enc.ID().Dims)
//	err := enc.Encode(ctx, []string{"first text", "second text"}, dst)
package embed

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/verdict"
)

// ID identifies an encoder: vectors of encoders with different IDs must never
// meet in one model.
type ID struct {
	Kind   string `json:"kind"`   // hash, static, transformer or remote
	Name   string `json:"name"`   // human-readable, for example "minilm-256"
	Dims   int    `json:"dims"`   // vector length
	Digest string `json:"digest"` // sha256 of everything that determines the vectors
}

func (id ID) String() string { return fmt.Sprintf("%s/%s (%d dims)", id.Kind, id.Name, id.Dims) }

// Encoder turns texts into vectors of unit length, or of zeros for a text
// without content. It is deterministic and safe for concurrent use.
type Encoder interface {
	ID() ID
	// Encode writes the vector of texts[i] to dst[i*Dims:(i+1)*Dims].
	// len(dst) must be len(texts)*Dims.
	Encode(ctx context.Context, texts []string, dst []float32) error
}

// MaxText is how many bytes of one text are encoded: the first two thirds and
// the last third of it. It bounds the cost of a verdict.
const MaxText = 6000

// Clip shortens s to at most max bytes, keeping its head (two thirds) and its
// tail, cut at rune boundaries.
func Clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	head, tail := max*2/3, len(s)-max/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + s[tail:]
}

// TaskText is the text whose vector is e.
func TaskText(t verdict.Task) string {
	if t.Context == "" {
		return Clip(t.Instruction, MaxText)
	}
	return Clip(t.Instruction, MaxText/2) + "\n" + Clip(t.Context, MaxText/2)
}

// CallText is the text whose vector stands for the call a_t.
func CallText(c verdict.Call) string {
	if c.IsMessage() {
		return Clip(c.Text, MaxText)
	}
	var b strings.Builder
	b.WriteString(c.Tool)
	b.WriteByte(' ')
	b.WriteString(Clip(c.Arguments, MaxText*2/3))
	if c.Text != "" {
		b.WriteByte('\n')
		b.WriteString(Clip(c.Text, MaxText/3))
	}
	return b.String()
}

// ResultText is the text whose vector is o_{t+1}. It is empty when nothing came
// back, in which case there is no observation.
func ResultText(r verdict.Result) string {
	switch {
	case r.Error == "":
		return Clip(r.Output, MaxText)
	case r.Output == "":
		return Clip(r.Error, MaxText)
	}
	return Clip(r.Output, MaxText*2/3) + "\n" + Clip(r.Error, MaxText/3)
}
