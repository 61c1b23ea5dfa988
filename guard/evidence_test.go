package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// Explaining is judging: the same verdict, and no trace in what follows.
func TestExplainIsJudge(t *testing.T) {
	m := testModel(t)
	for seed := range uint64(4) {
		a, b := m.Start(testTask), m.Start(testTask)
		for i, x := range randomRun(seed, 10) {
			want, got := a.Judge(context.Background(), x.call), b.Explain(context.Background(), x.call)
			if len(got.Evidence) == 0 {
				t.Fatalf("step %d: no evidence", i)
			}
			if again := b.Explain(context.Background(), x.call); !cmp.Equal(got, again) {
				t.Fatalf("step %d: explained again: %s", i, cmp.Diff(got, again))
			}
			if (got.Decision == Pass) != (got.Suggestions == nil) {
				t.Errorf("step %d: %v with suggestions %v", i, got.Decision, got.Suggestions)
			}
			got.Evidence, got.Suggestions = nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d (-judged +explained): %s", i, diff)
			}
			for _, s := range []*Session{a, b} {
				if err := s.Commit(x.call, x.result); err != nil {
					t.Fatal(err)
				}
			}
			one, err := a.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if two, err := b.MarshalBinary(); err != nil || !bytes.Equal(one, two) {
				t.Fatalf("step %d: the states differ (%v)", i, err)
			}
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	v := m.Start(testTask).Explain(ctx, Call{Tool: "a"})
	if v.Scored || v.Evidence != nil || len(v.Suggestions) != 1 || v.Suggestions[0].Kind != AskUser {
		t.Errorf("without an answer of the model: %+v", v)
	}
}

// Every contribution is the difference that the naive model of the reference makes
// without the input.
func TestEvidenceMatchesReference(t *testing.T) {
	for name, d := range map[string]artifact.Dims{"three parts": tiny, "no network over the features": {D: tiny.D, F: tiny.F, P: tiny.P, H: tiny.H, G: tiny.G, C: tiny.C, Q: tiny.Q}} {
		t.Run(name, func(t *testing.T) {
			files := testFiles(t, d, nil, artifact.Thresholds{})
			a, err := artifact.OpenFS(files)
			if err != nil {
				t.Fatal(err)
			}
			m, err := OpenFS(files)
			if err != nil {
				t.Fatal(err)
			}
			r := &reference{d: d, mix: 0.01, t: a.Tensors}
			wide := func(x []float32) vec {
				out := vec{}
				for _, y := range x {
					out = append(out, float64(y))
				}
				return out
			}
			text := func(s string) vec {
				dst := make([]float32, d.D)
				if err := m.encoder.Encode(context.Background(), []string{s}, dst); err != nil {
					t.Fatal(err)
				}
				return wide(dst)
			}
			s := m.Start(testTask)
			e, zero := r.mlp("adapt.e", text(embed.TaskText(testTask))), make(vec, d.P)
			index := featureIndex()
			for i, x := range randomRun(3, 12) {
				v := s.Explain(context.Background(), x.call)
				h, z, fn := wide(s.net.h), wide(s.net.z), wide(s.net.feat)
				act := r.mlp("adapt.a", text(embed.CallText(x.call)))
				core := func(z, act vec) (next, zh vec) {
					u := r.ln("gru.ln", cat(z, act, fn))
					gate := func(w string) vec { return add(add(r.mul("gru.w"+w, u), r.mul("gru.u"+w, h)), r.v("gru.b"+w)) }
					gr, gu := gate("r"), gate("u")
					wn, un := add(r.mul("gru.wn", u), r.v("gru.bn")), add(r.mul("gru.un", h), r.v("gru.bm"))
					for i := range h {
						u := logistic(gu[i])
						next = append(next, (1-u)*math.Tanh(wn[i]+logistic(gr[i])*un[i])+u*h[i])
					}
					return next, r.latent(r.linear("prior.out", r.mlp("prior.l1", next)))
				}
				next, zh := core(z, act)
				haz, pre := r.readHeads(next, zh, act, fn, e)
				if math.Abs(haz-v.Logits.Hazard) > 1e-5 {
					t.Fatalf("step %d: the reference says %v, the model %v", i, haz, v.Logits.Hazard)
				}
				for _, c := range v.Evidence {
					var lessHaz, lessPre float64
					memory := s.memory
					feat := slices.Clone(s.net.feat)
					switch c.Name {
					case "task":
						lessHaz, lessPre = r.readHeads(next, zh, act, fn, zero)
					case "call":
						next, zh := core(z, zero)
						lessHaz, lessPre = r.readHeads(next, zh, zero, fn, e)
					case "result":
						none := r.latent(r.linear("post.out", r.mlp("post.l1", cat(h, r.v("obs.none")))))
						next, zh := core(none, act)
						lessHaz, lessPre = r.readHeads(next, zh, act, fn, e)
					case "history":
						lessHaz, lessPre, memory = haz, pre, calib.Memory{}
					default:
						j := index[c.Name]
						less := slices.Clone(fn)
						less[j], feat[j] = 0, 0
						lessHaz, lessPre = r.readHeads(next, zh, act, less, e)
						if want := math.Max(-8, math.Min(8, (c.Value-c.Typical)/float64(m.net.scale[j]))); math.Abs(want-fn[j]) > 1e-4 {
							t.Errorf("step %d: %s has the value %v, typically %v; the model sees %v", i, c.Name, c.Value, c.Typical, fn[j])
						}
					}
					wantHaz, wantPre := (haz-lessHaz)/m.fusion.TempHazard, (pre-lessPre)/m.fusion.TempPrefix
					wantRisk := v.Risk - m.fusion.AdvanceWith(&memory, lessHaz, lessPre, feat).Risk
					if math.Abs(c.Hazard-wantHaz) > 2e-5 || math.Abs(c.Prefix-wantPre) > 2e-5 || math.Abs(c.Risk-wantRisk) > 3*calib.GridStep {
						t.Errorf("step %d: %s adds %v, %v, %v, want %v, %v, %v", i, c.Name, c.Hazard, c.Prefix, c.Risk, wantHaz, wantPre, wantRisk)
					}
				}
				if err := s.Commit(x.call, x.result); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// What is left out for the sake of speed is small: the largest contributions are
// among those that the first order finds.
func TestEvidenceFindsTheLargest(t *testing.T) {
	m := testModel(t)
	s := m.Start(testTask)
	missed, all := 0, 0
	for _, x := range randomRun(9, 30) {
		v := s.Explain(context.Background(), x.call)
		m.net.borrow(s.net)
		s.tracker.Compute(s.net.feat, validCall(x.call))
		if err := s.encode(context.Background(), embed.CallText(x.call)); err != nil {
			t.Fatal(err)
		}
		m.net.propose(s.net)
		o := newOccluder(m.net, s.net)
		best, size := "", 0.0
		for j, d := range features.Definitions() {
			l := o.feature(j)
			if n := math.Abs((o.base.Hazard-l.Hazard)/m.fusion.TempHazard + (o.base.Prefix-l.Prefix)/m.fusion.TempPrefix); n > size {
				best, size = d.Name, n
			}
		}
		m.net.giveBack(s.net)
		first := slices.IndexFunc(v.Evidence, func(c Contribution) bool { return c.Kind == OfFeature })
		if all++; v.Evidence[first].Name != best {
			missed++
		}
		if err := s.Commit(x.call, x.result); err != nil {
			t.Fatal(err)
		}
	}
	if missed > all/10 {
		t.Errorf("the largest contribution was missed in %d of %d steps", missed, all)
	}
}

// Each step has evidence of every kind, in order, with a sentence, and no more of
// the texts than the names of features.
func TestEvidenceForm(t *testing.T) {
	m := testModel(t)
	s := m.Start(testTask)
	for i, x := range randomRun(4, 10) {
		v := s.Explain(context.Background(), x.call)
		kinds := map[EvidenceKind]int{}
		last := math.Inf(1)
		for _, c := range v.Evidence {
			kinds[c.Kind]++
			if c.Text == "" || c.Name == "" {
				t.Errorf("step %d: %+v", i, c)
			}
			if size := math.Abs(c.Hazard + c.Prefix); c.Kind != OfHistory && size > last+1e-12 {
				t.Errorf("step %d: %s is out of order", i, c.Name)
			} else {
				last = size
			}
		}
		texts, history := 3, 1
		if i == 0 {
			texts, history = 2, 0
		}
		if kinds[OfFeature] != maxFeatures || kinds[OfText] != texts || kinds[OfHistory] != history {
			t.Errorf("step %d: %v", i, kinds)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(v.Evidence, back.Evidence) || !cmp.Equal(v.Suggestions, back.Suggestions) {
			t.Errorf("round trip: %v %s", err, cmp.Diff(v, back))
		}
		var doc any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		schema := readSchema(t)
		conform(t, schema, schema, doc, "verdict")
		if err := s.Commit(x.call, x.result); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSentences(t *testing.T) {
	index := featureIndex()
	for name, text := range sentences {
		j, ok := index[name]
		if !ok {
			t.Errorf("there is no feature %s", name)
			continue
		}
		d := features.Definitions()[j]
		for _, x := range []float32{d.Lo, d.Hi} {
			if got := featureSentence(d, float64(x)); strings.ContainsAny(got, "#|") || got == "" || strings.Contains(got, "Inf") || strings.Contains(got, "NaN") {
				t.Errorf("%s at %v: %q", name, x, got)
			}
		}
		two := strings.Contains(text, " | ")
		for prefix, want := range map[string]bool{"1 if ": true, "1 / (1 +": true, "share ": false, "largest ": false, "log1p ": false} {
			if strings.HasPrefix(d.Doc, prefix) && two != want {
				t.Errorf("%s: %q does not fit %q", name, text, d.Doc)
			}
		}
	}
	for _, d := range features.Definitions() {
		if _, ok := sentences[d.Name]; !ok {
			t.Errorf("%s has no sentence of its own", d.Name)
		}
	}
	for _, tt := range []struct {
		name  string
		value float64
		want  string
	}{
		{"arg_directive", 0.625, "62 % of the arguments' words come from an order in a result"},
		{"tool_used", math.Log1p(3), "the tool was used 3 times before"},
		{"match_age", 1, "the nearest order in a result was seen 1 step ago"},
		{"match_age", 0.25, "the nearest order in a result was seen 4 steps ago"},
		{"match_age", 0, "no order was seen before"},
		{"max_score", 1.75, "the most pressing order in any result scores 1.75 of 6"},
		{"is_send", 1, "the tool sends or publishes"},
		{"is_send", 0, "the tool does not send"},
	} {
		if got := featureSentence(features.Definitions()[index[tt.name]], tt.value); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := featureSentence(features.Definition{Name: "new_one", Hi: 1, Doc: "share of it"}, 0.5); got != "new_one is 0.5: share of it" {
		t.Errorf("%q", got)
	}
}
