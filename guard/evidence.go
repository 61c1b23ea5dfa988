package guard

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed/features"
)

// EvidenceKind says what a contribution is of.
type EvidenceKind string

// The kinds.
const (
	OfFeature EvidenceKind = "feature" // a call feature; Name is that of docs/reference/features.md
	OfText    EvidenceKind = "text"    // the wording of a text: task, call or result
	OfHistory EvidenceKind = "history" // the scores of the steps before
)

// Contribution is what one input adds to a verdict: the difference that its absence
// makes, computed anew without it and with all else as it is. Contributions do not
// sum to the score, since inputs act together.
//
// A call feature is absent where it has its mean in training. A text is absent where
// the model sees nothing in its place; what the call features read of it stays, and
// so does what the state of the run took from it before. History is absent at the
// first step of a run.
type Contribution struct {
	Kind    EvidenceKind
	Name    string
	Value   float64 // of a feature
	Typical float64 // of a feature: its mean in training
	Hazard  float64 // added to the log-odds of the hazard probability
	Prefix  float64 // added to the log-odds of the prefix probability
	Risk    float64 // added to the risk score, -1 to 1
	Text    string  // one sentence for a person; holds nothing of the texts
}

// How many contributions there are.
const (
	maxFeatures   = 8  // in the evidence
	maxCandidates = 10 // whose exact contribution is computed: the largest to first order
)

// Explain is [Session.Judge] with the reasons in the numbers: the verdict, the same
// bit for bit, has Evidence where the model gave an answer, largest contribution
// first, and Suggestions where it is not Pass. It costs about as much again as Judge
// and Commit together (BenchmarkExplain500).
func (s *Session) Explain(ctx context.Context, c Call) Verdict { return s.judge(ctx, c, true) }

// evidence needs the working memory as propose left it.
func (s *Session) evidence(v *Verdict, raw []float32) {
	o := newOccluder(s.model.net, s.net)
	f := &s.model.fusion
	layer := func(j int) float64 {
		if f.Layer == nil || j >= len(f.Layer.Features) {
			return 0
		}
		return f.Layer.Features[j] * float64(s.net.feat[j])
	}
	feat := slices.Clone(s.net.feat)
	risk := func(l Logits, memory calib.Memory) float64 {
		return f.AdvanceWith(&memory, l.Hazard, l.Prefix, feat).Risk
	}
	weight := map[string]float64{}
	contribution := func(kind EvidenceKind, name string, without Logits, more float64) Contribution {
		c := Contribution{
			Kind: kind, Name: name,
			Hazard: (o.base.Hazard - without.Hazard) / f.TempHazard,
			Prefix: (o.base.Prefix - without.Prefix) / f.TempPrefix,
			Risk:   v.Risk - risk(without, s.memory),
		}
		weight[name] = math.Abs(c.Hazard + c.Prefix + more)
		return c
	}
	byWeight := func(a, b Contribution) int { return cmp.Compare(weight[b.Name], weight[a.Name]) }

	var list []Contribution
	definitions := features.Definitions()
	for _, j := range o.likely(maxCandidates, f.TempHazard, f.TempPrefix, layer) {
		if s.net.feat[j] == 0 {
			continue
		}
		kept := feat[j]
		feat[j] = 0
		c := contribution(OfFeature, definitions[j].Name, o.feature(j), layer(j))
		feat[j] = kept
		c.Value, c.Typical = float64(raw[j]), float64(s.model.net.mean[j])
		c.Text = featureSentence(definitions[j], c.Value)
		list = append(list, c)
	}
	slices.SortStableFunc(list, byWeight)
	list = list[:min(len(list), maxFeatures)]
	call, result := o.texts()
	for _, t := range []struct {
		name, text string
		without    Logits
	}{
		{"task", "the wording of the task", o.task()},
		{"call", "the wording of the call", call},
		{"result", "the wording of what came back last", result},
	} {
		if t.name == "result" && s.steps == 0 {
			continue
		}
		c := contribution(OfText, t.name, t.without, 0)
		c.Text = t.text
		list = append(list, c)
	}
	slices.SortStableFunc(list, byWeight)
	if s.steps > 0 {
		list = append(list, Contribution{
			Kind: OfHistory, Name: "history", Text: "how the steps before were scored",
			Risk: v.Risk - risk(v.Logits, calib.Memory{}),
		})
	}
	v.Evidence = list
}
