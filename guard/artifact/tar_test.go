package artifact

import (
	"os"
	"testing"
)

func FuzzParseTar(f *testing.F) {
	b, err := os.ReadFile("../testdata/broken/missing.tar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:700])
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := parseTar(b)
		if err != nil {
			return
		}
		total := 0
		for name, data := range files {
			if name == "" || name[0] == '/' {
				t.Fatalf("name %q", name)
			}
			total += len(data)
		}
		if total > len(b) {
			t.Fatalf("%d bytes of files out of %d", total, len(b))
		}
	})
}
