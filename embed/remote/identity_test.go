package remote

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/embed"
)

// A server that answers the same but for rounding has the wanted identity;
// another model, pooling or prompt has not.
func TestAs(t *testing.T) {
	s := newServer(t, 64)
	id := mustStart(t, s.options()).ID()
	if again := mustStart(t, s.options()).ID(); again != id {
		t.Errorf("identity %v, then %v", id, again)
	}
	for name, tt := range map[string]struct {
		server func()
		opts   func(*Options)
		want   string // in the error, "" for none
	}{
		"as it was":           {func() {}, func(*Options) {}, ""},
		"rounding":            {func() { s.noise = 1e-3 }, func(*Options) {}, ""},
		"another model":       {func() { s.seed = 2 }, func(*Options) {}, "of 224 bits of the sketch differ"},
		"another version":     {func() { s.shift = 0.3 }, func(*Options) {}, "of 224 bits"},
		"another length":      {func() { s.dims = 32 }, func(*Options) {}, "remote/test-model (64 dims)"},
		"another name":        {func() {}, func(o *Options) { o.Model = "m2" }, "remote/m2"},
		"another prefix":      {func() {}, func(o *Options) { o.Prefix = "query: " }, "its name, dims, prefix and clipping must be the same"},
		"another clipping":    {func() {}, func(o *Options) { o.MaxBytes = 100 }, "its name, dims, prefix and clipping must be the same"},
		"answers to the name": {func() { s.name = "m-2024" }, func(*Options) {}, ""}, // of an alias
	} {
		s.change(func() {
			s.seed, s.noise, s.shift, s.dims, s.name = 1, 0, 0, 64, ""
			tt.server()
		})
		o := s.options()
		tt.opts(&o)
		own := mustStart(t, o)
		e, err := own.As(id)
		switch {
		case tt.want == "" && (err != nil || e.ID() != id):
			t.Errorf("%s: error %v, want the identity", name, err)
		case tt.want != "" && (!errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: error %v, want ErrChanged with %q", name, err, tt.want)
		}
	}
}

// A model that is replaced while it is asked is noticed by the next request of
// many texts, and by the next of any where its name changes too.
func TestReplacedMeanwhile(t *testing.T) {
	s := newServer(t, 64)
	e := mustStart(t, s.options())
	if _, err := encode(e, t.Context(), words(40)...); err != nil {
		t.Fatal(err)
	}
	s.change(func() { s.noise = 1e-3 })
	if _, err := encode(e, t.Context(), words(40)...); err != nil {
		t.Fatal(err)
	}
	s.change(func() { s.seed = 2 })
	if _, err := encode(e, t.Context(), words(canaryFrom)...); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("error %v, want ErrChanged", err)
	}
	s.change(func() { s.seed, s.name = 1, "other" })
	if _, err := encode(e, t.Context(), "one"); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("error %v, want ErrChanged", err)
	}
}

// A bit differs with probability angle/pi, which is what [Tolerance] rests on.
func TestSketchDistance(t *testing.T) {
	const dims, tries = 128, 60
	rng := rand.New(rand.NewPCG(7, 7))
	vectors := func() []float32 {
		v := make([]float32, len(probes)*dims)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	for _, angle := range []float64{0, 0.001, 0.01, 0.1, 0.5, math.Pi / 2} {
		var sum, most float64
		for range tries {
			a, b := vectors(), vectors()
			turned := make([]float32, len(a))
			for i := range a {
				turned[i] = float32(math.Cos(angle)*float64(a[i]) + math.Sin(angle)*float64(b[i]))
			}
			x := embed.ID{Kind: Kind, Name: "m", Dims: dims, Digest: digest(sketch(a, dims))}
			y := embed.ID{Kind: Kind, Name: "m", Dims: dims, Digest: digest(sketch(turned, dims))}
			d, ok := distance(x, y)
			if !ok {
				t.Fatal("sketches cannot be compared")
			}
			if Same(x, y) != (d <= Tolerance) {
				t.Errorf("Same is %v at distance %d", Same(x, y), d)
			}
			sum, most = sum+float64(d), max(most, float64(d))
		}
		// Four standard errors of the mean of binomial counts, a little correlated.
		p := angle / math.Pi
		want, slack := sketchBits*p, 1.5*4*math.Sqrt(sketchBits*p*(1-p)/tries)+0.01
		if got := sum / tries; math.Abs(got-want) > slack {
			t.Errorf("angle %v: %v bits differ on average, want %v within %v", angle, got, want, slack)
		}
		if angle <= 0.01 && most > Tolerance {
			t.Errorf("angle %v: %v bits differ in one case, more than are tolerated", angle, most)
		}
	}
}

func digest(sketch []byte) string {
	const hexDigits = "0123456789abcdef"
	out := []byte("00000000")
	for _, b := range sketch {
		out = append(out, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(out)
}

func TestSameRefuses(t *testing.T) {
	id := embed.ID{Kind: Kind, Name: "m", Dims: 4, Digest: strings.Repeat("ab", 32)}
	if !Same(id, id) {
		t.Error("an identity is not the same as itself")
	}
	for name, change := range map[string]func(*embed.ID){
		"kind":     func(x *embed.ID) { x.Kind = "hash" },
		"name":     func(x *embed.ID) { x.Name = "n" },
		"dims":     func(x *embed.ID) { x.Dims = 5 },
		"settings": func(x *embed.ID) { x.Digest = "00" + x.Digest[2:] },
		"sketch":   func(x *embed.ID) { x.Digest = x.Digest[:62] + "54" },
		"short":    func(x *embed.ID) { x.Digest = x.Digest[:62] },
		"not hex":  func(x *embed.ID) { x.Digest = "zz" + x.Digest[2:] },
		"none":     func(x *embed.ID) { x.Digest = "" },
	} {
		other := id
		change(&other)
		if got := Same(id, other); got != (name == "") {
			t.Errorf("%s: Same is %v", name, got)
		}
	}
}
