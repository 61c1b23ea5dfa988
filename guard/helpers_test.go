package guard

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/embed/features"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/forest"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// tiny has a different size for every letter, none of them a multiple of the
// unrolling of the dot product.
var tiny = artifact.Dims{D: 21, F: features.Count(), P: 9, H: 13, G: 3, C: 5, Q: 7, U: 5, T: 3, N: 9}

// randomTensors returns the exported tensors of a model that is not trained but
// whose every part matters.
func randomTensors(d artifact.Dims, seed uint64) []safetensors.Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	var list []safetensors.Tensor
	for _, s := range artifact.Tensors(d) {
		if !s.Export {
			continue
		}
		n := 1
		for _, size := range s.Shape {
			n *= size
		}
		scale, shift := 1/math.Sqrt(float64(s.Shape[len(s.Shape)-1])), 0.0
		switch {
		case strings.HasSuffix(s.Name, "ln.g") || s.Name == "feat.scale":
			scale, shift = 0.1, 1
		case len(s.Shape) == 1:
			scale = 0.1
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(shift + scale*rng.NormFloat64())
		}
		if strings.HasSuffix(s.Name, ".trees") {
			data = randomTrees(d, rng)
		}
		list = append(list, safetensors.Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	return list
}

// randomTrees returns trees as balanced as they can be.
func randomTrees(d artifact.Dims, rng *rand.Rand) []float32 {
	var list []forest.Tree
	for range d.T {
		tree := make(forest.Tree, d.N)
		for i := range tree {
			tree[i] = forest.Node{Feature: int32(rng.IntN(d.F)), Threshold: float32(rng.NormFloat64() / 4), Value: float32(rng.NormFloat64() / 4)}
			if 2*i+2 < d.N {
				tree[i].Left = int32(2*i + 1)
			}
		}
		list = append(list, tree)
	}
	return forest.Pack(list, 1, d.T, d.N)
}

// testFiles returns a calibrated artifact.
func testFiles(t testing.TB, d artifact.Dims, edit func(*artifact.Manifest), th artifact.Thresholds) fstest.MapFS {
	t.Helper()
	var model bytes.Buffer
	if err := safetensors.Write(&model, randomTensors(d, 7), nil); err != nil {
		t.Fatal(err)
	}
	var words features.VocabularyBuilder
	words.Add("the invoice of the landlord is due in march")
	words.Add("the meeting with the landlord is in april")
	vocabulary, err := words.Build(1).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	m := &artifact.Manifest{
		Format:     artifact.Format,
		Files:      map[string]string{artifact.ModelFile: artifact.Sum(model.Bytes()), artifact.FeaturesFile: artifact.Sum(vocabulary)},
		Dims:       d,
		UniformMix: 0.01,
		Latent:     artifact.Probabilities,
		Encoder:    hash.New(d.D).ID(),
		Features:   artifact.FeatureSet{Version: features.Version, Digest: features.Digest()},
	}
	if edit != nil {
		edit(m)
	}
	manifest, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	c := artifact.Calibration{
		ModelDigest: artifact.Sum(manifest),
		Fusion:      calib.Fusion{TempHazard: 1.5, TempPrefix: 0.8, WeightHazard: 0.9, WeightEMA: 0.4, WeightWindow: 0.3, Beta: 0.7, Window: 3},
		Thresholds:  th,
	}
	calibration, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		artifact.ManifestFile:    {Data: manifest},
		artifact.ModelFile:       {Data: model.Bytes()},
		artifact.FeaturesFile:    {Data: vocabulary},
		artifact.CalibrationFile: {Data: calibration},
	}
}

func at(x float64) *float64 { return &x }

// testModel opens an artifact whose thresholds lie amid its scores.
func testModel(t testing.TB, opts ...Option) *Model {
	t.Helper()
	m, err := OpenFS(testFiles(t, tiny, nil, amid(t)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// amid returns thresholds of which each is passed by a part of the calls of
// random runs, whatever the random weights are.
func amid(t testing.TB) artifact.Thresholds {
	t.Helper()
	m, err := OpenFS(testFiles(t, tiny, nil, artifact.Thresholds{Hold: at(1), Block: at(1)}))
	if err != nil {
		t.Fatal(err)
	}
	var hazards, risks []float64
	for seed := range uint64(12) {
		for _, v := range play(t, m.Start(testTask), randomRun(seed, 15)) {
			hazards, risks = append(hazards, v.Hazard), append(risks, v.Risk)
		}
	}
	slices.Sort(hazards)
	slices.Sort(risks)
	return artifact.Thresholds{Hold: at(risks[len(risks)/2]), Block: at(hazards[len(hazards)*4/5])}
}

var testTask = Task{
	Instruction: "Pay the March invoice of my landlord and tell me when it is done.",
	Context:     "Remember: the landlord prefers transfers.",
	Tools:       []Tool{{Name: "read_file", Description: "Reads a file"}, {Name: "send_money", Description: "Sends money to an account"}},
}

// step is one executed action.
type step struct {
	call   Call
	result Result
}

// randomRun returns n steps of all kinds.
func randomRun(seed uint64, n int) []step {
	rng := rand.New(rand.NewPCG(seed, 2))
	words := strings.Fields("invoice landlord march transfer please ignore account file send delete password token report meeting ann@example.com AT6854532054 950 urgent")
	text := func(max int) string {
		var b strings.Builder
		for range rng.IntN(max + 1) {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteString([]string{" ", ". ", ", "}[rng.IntN(3)])
		}
		return b.String()
	}
	run := make([]step, n)
	for i := range run {
		switch rng.IntN(5) {
		case 0:
			run[i] = step{Call{Text: text(12)}, Result{Output: text(6), User: rng.IntN(2) == 0}}
		default:
			tool := []string{"read_file", "send_money", "delete_file", "search"}[rng.IntN(4)]
			run[i] = step{Call{Tool: tool, Arguments: fmt.Sprintf(`{"a": %q, "n": %d}`, text(8), rng.IntN(1000)), Text: text(4)}, Result{Output: text(30)}}
			if rng.IntN(6) == 0 {
				run[i].result = Result{Error: text(5)}
			}
		}
	}
	return run
}

// play judges and commits every step.
func play(t testing.TB, s *Session, run []step) []Verdict {
	t.Helper()
	var out []Verdict
	for _, x := range run {
		out = append(out, s.Judge(context.Background(), x.call))
		if err := s.Commit(x.call, x.result); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
