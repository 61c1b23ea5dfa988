package train

import (
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/configs"
)

// What a model can be trained without (train.without), to measure what it is worth.
// The graph stays as it is, and so does the runtime: what is left out is held at
// values at which it says nothing.
const (
	withoutFeatures = "features" // of the calls
	withoutTexts    = "texts"    // of task, calls and results
	withoutState    = "state"    // in the heads
	withoutMemory   = "memory"   // of the steps before
)

// noScale is the scale of a feature that says nothing: what is divided by it is
// nothing beside any bias.
const noScale = 1e30

// closed is a bias that keeps the update gate of the recurrent cell at 0, so that
// nothing of the former state remains.
const closed = -30

// pin holds the first columns of a tensor, or all of it, at a value.
type pin struct {
	name    string
	columns int // 0: all
	value   float32
}

// pins returns what is held for a choice of train.without.
func pins(without string, s sizes) []pin {
	switch without {
	case withoutFeatures:
		return []pin{{name: "feat.scale", value: noScale}}
	case withoutTexts:
		return []pin{{name: "adapt.e.w"}, {name: "adapt.o.w"}, {name: "adapt.a.w"}}
	case withoutState:
		return []pin{{name: "head.haz.l1.w", columns: s.H + s.Z()}, {name: "head.pre.l1.w", columns: s.H + s.Z()}}
	case withoutMemory:
		return []pin{
			{name: "gru.ur"}, {name: "gru.uu"}, {name: "gru.un"},
			{name: "gru.wu"}, {name: "gru.bu", value: closed},
			{name: "post.l1.w", columns: s.H},
			{name: "init.w"}, {name: "init.b"}, // read by nothing else
		}
	}
	return nil
}

func checkWithout(without string) error {
	switch without {
	case "", withoutFeatures, withoutTexts, withoutState, withoutMemory:
		return nil
	}
	return fmt.Errorf("train: train.without is %q: want features, texts, state or memory, or nothing", without)
}

// hold sets the pinned values.
func (w *Weights) hold(ps []pin) {
	for _, p := range ps {
		at := w.index(p.name)
		v, width := w.values[at], len(w.values[at])
		if p.columns > 0 {
			width = w.params[at].Shape[1]
		}
		for i := range v {
			if p.columns == 0 || i%width < p.columns {
				v[i] = p.value
			}
		}
	}
}

// pinned returns the pin of a tensor.
func pinned(ps []pin, name string) (pin, bool) {
	for _, p := range ps {
		if p.name == name {
			return p, true
		}
	}
	return pin{}, false
}

// mask is 0 in the pinned columns of a tensor [out, in] and 1 elsewhere: times it,
// those have no gradient.
func (p pin) mask(shape []int) [][]float32 {
	row := make([]float32, shape[1])
	for i := range row {
		if i >= p.columns {
			row[i] = 1
		}
	}
	return [][]float32{row}
}

// learned counts the values that training moves and that can move a logit.
func learned(list []param, t configs.Train, s sizes) int {
	groups := map[Group]bool{}
	if t.Stage1.Steps > 0 {
		for g := range stage(1).learns(t) {
			groups[g] = true
		}
	}
	for g, scale := range stage(2).learns(t) {
		groups[g] = groups[g] || scale > 0
	}
	ps := pins(t.Without, s)
	n := 0
	for i := range list {
		p := &list[i]
		if !groups[p.Group] || trainingOnly(p.Name) || t.Without == withoutState && makesState(p) {
			continue
		}
		n += p.size()
		if pin, ok := pinned(ps, p.Name); ok {
			if pin.columns == 0 {
				n -= p.size()
			} else {
				n -= pin.columns * p.Shape[0]
			}
		}
	}
	return n
}

// makesState reports whether only the state depends on p.
func makesState(p *param) bool {
	return p.Group == World || p.Group == Core || strings.HasPrefix(p.Name, "adapt.o.")
}
