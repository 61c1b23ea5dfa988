package decisionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// logOf returns the lines of a log of n records, with their ends.
func logOf(t testing.TB, n int) [][]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.jsonl")
	l := open(t, path, Options{NoSync: true})
	for i := range n {
		appendAll(t, l, Record{Event: Start, Run: fmt.Sprint(i)})
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(b))
}

func check(lines ...[]byte) *Report {
	var v Verifier
	if err := v.Read("log", bytes.NewReader(bytes.Join(lines, nil))); err != nil {
		panic(err)
	}
	return v.Report()
}

// reseal gives a line that was edited the hash that belongs to what it says now.
func reseal(t testing.TB, b []byte, edit func(*line)) []byte {
	t.Helper()
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	edit(&l)
	b, _, err := l.seal(l.Seq, l.Prev)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerifyNamesTheLine(t *testing.T) {
	type want struct {
		kind   Kind
		line   int
		record uint64
	}
	l := logOf(t, 8)
	edited := bytes.Replace(l[3], []byte(`"run":"3"`), []byte(`"run":"4"`), 1)
	other := logOf(t, 8) // another log, with other hashes
	for i := range other {
		other[i] = reseal(t, other[i], func(x *line) { x.Cause = "other" })
	}
	for _, tt := range []struct {
		name  string
		lines [][]byte
		want  []want
	}{
		{"whole", l, nil},
		{"empty", nil, nil},
		{"the newest", l[4:], nil},
		{"cut at the end", l[:5], nil}, // what no chain can tell: Verifier.Head is for that
		{"changed", slices.Concat(l[:3], [][]byte{edited}, l[4:]), []want{{Changed, 4, 0}}},
		{"changed, spaces", slices.Concat(l[:3], [][]byte{bytes.Replace(l[3], []byte(":"), []byte(": "), 1)}, l[4:]), []want{{Changed, 4, 0}}},
		{"changed and hashed anew", slices.Concat(l[:3], [][]byte{reseal(t, l[3], func(x *line) { x.Run = "4" })}, l[4:]), []want{{Changed, 5, 5}}},
		{"of another log", slices.Concat(l[:3], other[3:4], l[4:]), []want{{Changed, 5, 5}}},
		{"removed", slices.Concat(l[:3], l[4:]), []want{{Removed, 4, 4}}},
		{"three removed", slices.Concat(l[:3], l[6:]), []want{{Removed, 4, 4}}},
		{"two neighbours swapped", slices.Concat(l[:3], l[4:5], l[3:4], l[5:]), []want{{Moved, 5, 4}}},
		{"moved to the end", slices.Concat(l[:3], l[4:], l[3:4]), []want{{Moved, 8, 4}}},
		{"moved to the front", slices.Concat(l[3:4], l[:3], l[4:]), []want{{Repeated, 2, 1}, {Repeated, 3, 2}, {Repeated, 4, 3}}},
		{"repeated", slices.Concat(l[:5], l[3:4], l[5:]), []want{{Repeated, 6, 4}}},
		{"a foreign line", slices.Concat(l[:3], [][]byte{[]byte("{}\n")}, l[3:]), []want{{Changed, 4, 0}}},
		{"a blank line", slices.Concat(l[:3], [][]byte{[]byte("\n")}, l[3:]), []want{{Changed, 4, 0}}},
		{"a line too long", slices.Concat(l[:3], [][]byte{[]byte(strings.Repeat("x", 2*MaxLine) + "\n")}, l[3:]), []want{{Changed, 4, 0}}},
		{"changed, and one removed behind it", slices.Concat(l[:3], [][]byte{edited}, l[5:]), []want{{Changed, 4, 0}, {Removed, 5, 5}}},
		{"one removed, one moved", slices.Concat(l[:2], l[4:7], l[3:4], l[7:]), []want{{Removed, 3, 3}, {Moved, 6, 4}}},
		{"first names one before", slices.Concat([][]byte{reseal(t, l[0], func(x *line) { x.Prev = strings.Repeat("1", 64) })}, l[1:]), []want{{Changed, 1, 1}, {Changed, 2, 2}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := check(tt.lines...)
			var got []want
			for _, p := range r.Problems {
				got = append(got, want{p.Kind, p.Line, p.Record})
			}
			if !slices.Equal(got, tt.want) || r.OK() != (tt.want == nil) {
				t.Errorf("got %v, want %v:\n%v", got, tt.want, r.Problems)
			}
		})
	}
}

// Whoever cuts the end off, or writes everything anew, is found by a hash that was
// noted elsewhere.
func TestVerifyHead(t *testing.T) {
	l := logOf(t, 6)
	head := check(l[:4]...).Head
	for n, want := range map[int]bool{6: true, 4: true, 3: false} {
		v := Verifier{Head: head}
		if err := v.Read("log", bytes.NewReader(bytes.Join(l[:n], nil))); err != nil {
			t.Fatal(err)
		}
		if r := v.Report(); r.OK() != want || r.Found != want {
			t.Errorf("%d lines: %+v", n, r)
		}
	}
}

// No change of one byte goes unseen, but for what a kill leaves as well.
func TestEveryByteCounts(t *testing.T) {
	log := bytes.Join(logOf(t, 4), nil)
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(log)
		i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[i] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		if r := check(b); r.OK() && r.Torn == 0 {
			t.Fatalf("byte %d: not seen", i)
		}
	})
}

func TestVerifyIsBounded(t *testing.T) {
	l := logOf(t, 1)[0]
	var b bytes.Buffer
	for i := range 3 * maxProblems {
		line := reseal(t, l, func(x *line) { x.Seq = uint64(2*i + 1) })
		b.Write(line)
		b.WriteString("x\n")
	}
	r := check(b.Bytes())
	if len(r.Problems) != maxProblems || r.More == 0 {
		t.Errorf("%d problems and %d more", len(r.Problems), r.More)
	}
}

func TestVerifyFileAfterTorn(t *testing.T) {
	l := logOf(t, 4)
	var v Verifier
	for i, part := range [][]byte{bytes.Join(l[:2], nil)[:len(l[0])+10], bytes.Join(l[2:], nil)} {
		if err := v.Read(fmt.Sprint(i), bytes.NewReader(part)); err != nil {
			t.Fatal(err)
		}
	}
	if r := v.Report(); r.OK() || r.Torn != 0 {
		t.Errorf("a file that was cut short in the middle of a log: %+v", r)
	}
}

func addLogs(f *testing.F) {
	l := logOf(f, 3)
	f.Add(bytes.Join(l, nil))
	f.Add(slices.Concat(l[1], l[0], l[2], []byte("{\n")))
	f.Add(slices.Concat(l[0], l[2], l[1]))
	f.Add([]byte(`{"log":"dreamguard.log/v1","seq":1e300,"hash":1}` + "\n"))
}

func FuzzVerify(f *testing.F) {
	addLogs(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := check(b)
		if r.OK() && r.Records+min(r.Torn, 1) != bytes.Count(b, []byte("\n"))+min(len(b)-1-bytes.LastIndexByte(b, '\n'), 1) {
			t.Fatalf("a line was overlooked: %+v", r)
		}
	})
}

// Whatever stands in the file: where it can be opened it takes records, and what was
// right stays right.
func FuzzOpen(f *testing.F) {
	addLogs(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "d.jsonl")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(path, Options{NoSync: true, Now: clock})
		if err != nil {
			return
		}
		defer l.Close()
		if err := l.Append(Record{Event: End}); err != nil {
			t.Fatalf("a log that could be opened takes no record: %v", err)
		}
		if before, after := check(b), verify(t, path); before.OK() && !after.OK() {
			t.Fatalf("writing broke the log: %+v, then %+v", before, after)
		}
	})
}
