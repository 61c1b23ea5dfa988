package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzOpenLedger: what can be read can be written to.
func FuzzOpenLedger(f *testing.F) {
	path := filepath.Join(f.TempDir(), ledgerFile)
	for _, s := range []string{`{"stages":{"data":{"inputs":"a","outputs":{"data/train.jsonl.gz":"b"}}}}`, `{"stages":null}`, `{"stages":{"data":null}}`, `{"Stages":{}}`, `null`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := openLedger(path)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		for name := range l.Stages {
			l.Stages[name].Counts = map[string]int{"runs": 1}
		}
		l.Stages["eval"] = &StageRecord{Seconds: 1}
		if err := l.save(); err != nil {
			t.Fatal(err)
		}
		again, err := openLedger(path)
		if err != nil || len(again.Stages) != len(l.Stages) {
			t.Errorf("%v, and %d stages of %d", err, len(again.Stages), len(l.Stages))
		}
	})
}
