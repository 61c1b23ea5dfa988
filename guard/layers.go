package guard

import "context"

// Starter is implemented by a layer that keeps state per session: Start returns
// the layer of one run. If that also implements encoding.BinaryMarshaler and
// encoding.BinaryUnmarshaler, its state is serialised with the session.
type Starter interface {
	Layer
	Start(Task) Layer
}

// askLayers lets every layer judge, even where the decision cannot get stricter:
// each is named in the verdict.
func (s *Session) askLayers(ctx context.Context, c Call, v *Verdict) {
	if len(s.layers) == 0 {
		return
	}
	v.Layers = make([]LayerVerdict, len(s.layers))
	for i, l := range s.layers {
		d, reasons, repair := l.Judge(ctx, s, c)
		d = min(max(d, Pass), Block) // a value outside the list is the nearest one inside
		v.Layers[i] = LayerVerdict{Name: l.Name(), Decision: d, Reasons: reasons}
		if d == Pass {
			continue
		}
		if d > v.Decision || d == v.Decision && v.Repair == nil {
			v.Repair = repair
		}
		v.raise(d, reasons...)
	}
}
