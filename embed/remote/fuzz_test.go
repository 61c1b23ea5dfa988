package remote

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzAnswer: whatever a server answers is refused or read, and what is read are
// unit vectors.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"model":"m","data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[3,4e-2]}]}`), 2, 2)
	f.Add([]byte(`{"data":[{"index":0,"embedding":"AACAPwAAAEA="}]}`), 1, 0)
	f.Add([]byte(`{"data":[{"index":0,"embedding":[null]}]}`), 1, 1)
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1e38,1e38]}]}`), 1, 2)
	f.Fuzz(func(t *testing.T, raw []byte, n, dims int) {
		n, dims = n&7, dims&7
		_, v, err := parseAnswer(raw, n, dims)
		if err != nil {
			if !wrong(err) && !errors.Is(err, errTorn) {
				t.Errorf("unexpected kind of error %v", err)
			}
			return
		}
		if n == 0 {
			return
		}
		if len(v)%n != 0 || len(v) == 0 || dims > 0 && len(v) != n*dims {
			t.Fatalf("%d values for %d texts of %d dims", len(v), n, dims)
		}
		d := len(v) / n
		for i := range n {
			if norm := dot(v[i*d:(i+1)*d], v[i*d:(i+1)*d]); math.Abs(norm-1) > 1e-5 {
				t.Fatalf("vector %d has the squared length %v", i, norm)
			}
		}
	})
}

// FuzzRefusal: messages of servers stay short and on one line, pauses in their
// bounds.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"no","code":"insufficient_quota"}}`), "3")
	f.Add([]byte(`{"detail":[1]}`), "Wed, 21 Oct 2015 07:28:00 GMT")
	f.Add([]byte("\x1b[2J"), "NaN")
	f.Fuzz(func(t *testing.T, raw []byte, after string) {
		kind, message := errorBody(raw)
		if !utf8.ValidString(message) || utf8.RuneCountInString(message) > 200 {
			t.Errorf("message %q", message)
		}
		for _, r := range message {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Errorf("message %q holds %U", message, r)
			}
		}
		_ = kind
		h := http.Header{"Retry-After": {after}, "Retry-After-Ms": {after}}
		if d := retryAfter(h, time.Unix(0, 0)); d < 0 {
			t.Errorf("pause %v", d)
		}
	})
}
