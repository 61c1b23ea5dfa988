package shipped_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dreamguard/dreamguard/checkpoints/shipped"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/embed/static"
)

func TestFS(t *testing.T) {
	if err := fstest.TestFS(shipped.FS, static.FileName); err != nil {
		t.Error(err)
	}
	f, err := shipped.FS.Open(static.FileName)
	if err != nil {
		t.Fatal(err)
	}
	held := f.(interface{ Bytes() []byte }).Bytes()
	read, err := fs.ReadFile(shipped.FS, static.FileName)
	if err != nil || !bytes.Equal(held, read) {
		t.Errorf("used in place and read, the file differs (%v)", err)
	}
	// A second reader of the file gets the same memory, so nothing was copied.
	g, err := shipped.FS.Open(static.FileName)
	if err != nil {
		t.Fatal(err)
	}
	if &g.(interface{ Bytes() []byte }).Bytes()[0] != &held[0] {
		t.Error("opening the file copies it")
	}
}

func open(t testing.TB) *static.Encoder {
	t.Helper()
	e, err := static.Open(shipped.FS)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is shipped says where it comes from, and NOTICE names it.
func TestEncoder(t *testing.T) {
	e := open(t)
	m := e.Table().Manifest
	// The weights that two packagers publish alike (docs/reference/encoders.md).
	const weights = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
	if m.Source.Weights != weights || m.Licence.SPDX != "Apache-2.0" || m.Dims != 256 || m.Tokens != 30522 {
		t.Errorf("manifest %+v", m)
	}
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(notice), m.Source.Name) || !strings.Contains(string(notice), m.Licence.SPDX) {
		t.Errorf("NOTICE does not name %s and %s", m.Source.Name, m.Licence.SPDX)
	}
}

// Texts that mean the same in other words are nearer to each other than to the
// rest, which hashed words cannot tell.
func TestMeaning(t *testing.T) {
	texts := []string{
		"transfer 500 euros to the landlord", "pay the rent",
		"delete all files on the server", "remove every document from the disk",
		"what is the weather like in Paris", "forecast for tomorrow: sunny with some clouds",
	}
	c, err := distill.Cosines(context.Background(), open(t), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(texts); i += 2 {
		for j := range texts {
			if j/2 != i/2 && c[i][j] >= c[i][i+1] {
				t.Errorf("%q is nearer to %q (%.3f) than to %q (%.3f)", texts[i], texts[j], c[i][j], texts[i+1], c[i][i+1])
			}
		}
	}
}

// sample is 500 characters as tools return them.
var sample = (`{"from": "ann@example.com", "subject": "Invoice 4711", "body": "Please find attached the invoice for March. ` +
	strings.Repeat(`The amount of 950.00 EUR is due on 2026-04-01; transfer it to account AT68 5453 2054 and quote the number. `, 5))[:500]

func BenchmarkEncode500(b *testing.B) {
	e := open(b)
	dst := make([]float32, e.ID().Dims)
	texts := []string{sample}
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Encode(context.Background(), texts, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// Loading is hashing the file and indexing the vocabulary.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, err := static.Open(shipped.FS); err != nil {
			b.Fatal(err)
		}
	}
}
