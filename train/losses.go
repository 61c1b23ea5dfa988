package train

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/dreamguard/dreamguard/configs"
)

// kl returns KL[p || q] in nats, summed over the factors: [n] for probabilities
// p, q of shape [n, G, C], all above 0.
func kl(p, q *Node) *Node {
	return ReduceSum(Mul(p, Sub(Log(p), Log(q))), 1, 2)
}

// balancedKL returns the dynamics and the representation loss [n]: both are
// max(KL[q || p], kappa), the first trains the prior p only and the second the
// posterior q only. The sum over factors comes before the maximum: kappa is the
// free budget of a step, not of a factor.
func balancedKL(q, p *Node, kappa float64) (dyn, rep *Node) {
	dyn = MaxScalar(kl(StopGradient(q), p), kappa)
	rep = MaxScalar(kl(q, StopGradient(p)), kappa)
	return dyn, rep
}

// centredCosine returns 1 - cos(x - mean x, y - mean y) per row, [n], for x and y
// [n, d]. The means are over the rows that w [n] weights (weights sum to 1, or
// are all 0 if there is nothing to predict). No gradient flows into y.
func centredCosine(x, y, w *Node) *Node {
	centre := func(v *Node) *Node { return Sub(v, DotGeneral(row(w), []int{1}, nil, v, []int{0}, nil)) }
	x, y = centre(x), centre(StopGradient(y))
	inner := ReduceSum(Mul(x, y), -1)
	norm := func(v *Node) *Node { return Sqrt(AddScalar(ReduceSum(Square(v), -1), cosineEpsilon)) }
	return OneMinus(Div(inner, Mul(norm(x), norm(y))))
}

// cosineEpsilon is added to squared norms: it bounds the gradient of a row that
// equals the mean.
const cosineEpsilon = 1e-6

// bce is the binary cross-entropy of logits against targets in [0, 1], [n].
func bce(logit, target *Node) *Node {
	// max(l, 0) - l t + log(1 + exp(-|l|)) does not overflow for any logit.
	return Add(Sub(MaxScalar(logit, 0), Mul(logit, target)), Log1P(Exp(Neg(Abs(logit)))))
}

// worldLoss holds the terms of stage 1, scalars.
type worldLoss struct {
	total, predict, prior, dyn, rep, kl *Node
}

// weighted is sum(w x): every mean of this package, the weights being normalised
// on the host.
func weighted(w, x *Node) *Node { return ReduceAllSum(Mul(w, x)) }

// world computes the loss of stage 1 from a rollout. in names the batch tensors
// that a batch is made of (batch.go).
func (n *net) world(c configs.Stage1, in map[string]*Node, r rolloutOut, prior *Node) worldLoss {
	var l worldLoss
	dyn, rep := balancedKL(r.q, prior, c.FreeBits)
	l.dyn, l.rep = weighted(in["kl.w"], dyn), weighted(in["kl.w"], rep)
	l.kl = weighted(in["kl.w"], StopGradient(kl(r.q, prior)))
	batch := in["e"].Shape().Dim(0)
	target := SliceAxis(in["o"], 0, AxisRangeToEnd(batch)) // o_1 ... o_T
	l.predict = weighted(in["predict.w"], centredCosine(n.predict(r.h, r.z), target, in["predict.centre"]))
	l.total = Add(MulScalar(l.predict, c.Predict), Add(MulScalar(l.dyn, c.Dynamics), MulScalar(l.rep, c.Represent)))
	l.prior = ScalarZero(l.total.Graph(), floatType)
	if c.Prior > 0 {
		zh := n.sample(prior, in["u.prior"])
		l.prior = weighted(in["predict.w"], centredCosine(n.predict(r.h, zh), target, in["predict.centre"]))
		l.total = Add(l.total, MulScalar(l.prior, c.Prior))
	}
	return l
}
