package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/embed/static"
)

// tinyBERT is a folder as Hugging Face's, with random weights.
const tinyBERT = "../../embed/transformer/testdata/bert-tiny"

// From a folder and runs to a table, its description, and how it agrees.
func TestEncoderDistill(t *testing.T) {
	runs, cache := makeRuns(t, "12"), t.TempDir()
	out := filepath.Join(t.TempDir(), "new", "encoder.safetensors")
	distilled := []string{"encoder", "distill", "-q", "--from", tinyBERT, "--corpus", runs, "--out", out, "--cache", cache,
		"--dims", "16", "--texts", "60", "--licence", "Apache-2.0", "--source", "ours/tiny"}
	r := run(t, append(distilled, "--json")...)
	var made struct {
		Path       string
		Manifest   static.Manifest
		Iterations int
		Corrected  int
	}
	if err := json.Unmarshal([]byte(r.stdout), &made); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, stderr %q, %v", r.code, r.stderr, err)
	}
	m := made.Manifest
	if made.Path != out || m.Name != "tiny-static-16" || m.Tokens != 216 || m.Corpus.Files[0].Runs != 12 || m.Corpus.Fitted == 0 || made.Iterations == 0 || made.Corrected == 0 {
		t.Errorf("%+v", made)
	}
	first, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, distilled...); r.code != exitDone || !strings.Contains(r.stdout, "ours/tiny") || !strings.Contains(r.stdout, "tokens corrected") {
		t.Errorf("%+v", r)
	}
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same command, other bytes (%v)", err)
	}

	// The teacher's folder has another name: its vectors are still those in the cache.
	renamed := filepath.Join(t.TempDir(), "renamed")
	if err := os.CopyFS(renamed, os.DirFS(tinyBERT)); err != nil {
		t.Fatal(err)
	}
	moved := slices.Clone(distilled)
	moved[slices.Index(moved, tinyBERT)] = renamed
	if r := run(t, moved...); r.code != exitDone {
		t.Errorf("a renamed teacher: %+v", r)
	}
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(first, again) {
		t.Errorf("a renamed teacher, other bytes (%v)", err)
	}

	r = run(t, "inspect", out, "--json")
	var info encoderInfo
	if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || info.ID.Kind != "static" || info.ID.Dims != 16 || info.Manifest.Licence.SPDX != "Apache-2.0" {
		t.Errorf("inspect: %v in %q, stderr %q", err, r.stdout, r.stderr)
	}
	if r := run(t, "inspect", out); r.code != exitDone || !strings.Contains(r.stdout, info.ID.Digest) || !strings.Contains(r.stdout, "12 runs") {
		t.Errorf("inspect: %+v", r)
	}

	r = run(t, "encoder", "agree", "-q", "--from", tinyBERT, "--encoder", out, "--cache", cache, "--pairs", "30", "--json", runs)
	var agreed struct {
		Encoder   embed.ID
		Agreement []distill.Agreement
	}
	if err := json.Unmarshal([]byte(r.stdout), &agreed); err != nil || agreed.Encoder != info.ID {
		t.Fatalf("agree: %v in %q, stderr %q", err, r.stdout, r.stderr)
	}
	// One data set: two kinds of pairs, and all together. It was fitted to these runs.
	if rows := agreed.Agreement; len(rows) != 3 || rows[0].Pairs != 60 || rows[0].Spearman < 0.5 {
		t.Errorf("agreement %+v", rows)
	}
	if r := run(t, "encoder", "agree", "-q", "--from", tinyBERT, "--encoder", out, "--cache", cache, "--pairs", "30", runs); r.code != exitDone || !strings.Contains(r.stdout, "same set") {
		t.Errorf("agree: %+v", r)
	}

	r = run(t, "encoder", "agree", "-q", "--from", tinyBERT, "--hash", "--cache", cache, "--pairs", "30", "--json", runs)
	if err := json.Unmarshal([]byte(r.stdout), &agreed); err != nil || agreed.Encoder.Kind != "hash" {
		t.Errorf("agree --hash: %v in %q, stderr %q", err, r.stdout, r.stderr)
	}
	plain := filepath.Join(t.TempDir(), "plain.safetensors")
	if r := run(t, "encoder", "distill", "-q", "--from", tinyBERT, "--corpus", runs, "--out", plain, "--dims", "16", "--texts", "0"); r.code != exitDone || !strings.Contains(r.stdout, "0 of them fitted") {
		t.Errorf("without a fit: %+v", r)
	}

	b := bytes.Clone(first)
	b[len(b)-1] = '\n' // the last token is now empty
	if err := os.WriteFile(out, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", out}, {"encoder", "cosine", "--encoder", out, "a", "b"}} {
		if r := run(t, args...); r.code != exitFailure || !strings.Contains(r.stderr, "vocabulary") || !strings.Contains(r.stderr, out) {
			t.Errorf("a damaged encoder, %v: %+v", args, r)
		}
	}
}

func TestEncoderCosine(t *testing.T) {
	r := run(t, "encoder", "cosine", "--json", "pay the rent", "transfer money to the landlord", "weather forecast")
	var out struct {
		Encoder embed.ID
		Texts   []string
		Cosines [][]float64
	}
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || r.code != exitDone {
		t.Fatalf("exit %d, stderr %q, %v", r.code, r.stderr, err)
	}
	if c := out.Cosines; len(out.Texts) != 3 || len(c) != 3 || c[0][1] <= c[0][2] || c[0][1] != c[1][0] {
		t.Errorf("%+v", out)
	}
	if r := run(t, "encoder", "cosine", "PAY the rent", "pay THE rent"); r.code != exitDone || strings.Count(r.stdout, "1.000") != 4 {
		t.Errorf("%+v", r)
	}
}

func TestEncoderUsage(t *testing.T) {
	for line, want := range map[string]string{
		"encoder":                             "want distill, agree or cosine",
		"encoder distil":                      "see dreamguard encoder --help",
		"encoder distill":                     "--from DIR",
		"encoder distill --from x":            "--corpus FILE",
		"encoder distill --from x --corpus y": "--out FILE",
		"encoder distill --from x --corpus y --out z --texts -1":     "--texts -1",
		"encoder distill --from x --corpus y --out z --backend cuda": "want one of go",
		"encoder agree --from x":                                     "see dreamguard encoder agree --help",
		"encoder agree --from x --hash --encoder y z":                "hash",
		"encoder agree x":                    "--from DIR",
		"encoder agree --from x --pairs 1 y": "--pairs 1",
		"encoder cosine one":                 "see dreamguard encoder cosine --help",
	} {
		wantUsage(t, line, want)
	}
	if r := run(t, "encoder", "distill", "-q", "--from", t.TempDir(), "--corpus", "y", "--out", "z"); r.code != exitFailure || !strings.Contains(r.stderr, "config.json") {
		t.Errorf("an empty folder: %+v", r)
	}
}
