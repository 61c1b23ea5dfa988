// Package train fits the recurrent world model and the two risk heads of
// docs/reference/model.md. [Fit] is the whole of it: examples in, [Weights] out.
//
//	result, err := train.Fit(ctx, cfg, train.Dims{D: 256, F: 90}, trainSet, validation,
//		train.Options{Dir: filepath.Join(run, "train"), Progress: show})
//	if errors.Is(err, context.Canceled) { ... } // a checkpoint is on disk: call Fit again
//	err = result.Weights.Save("model.safetensors")
//
// Stage 1 learns to predict what comes back from a call; stage 2 learns the risk
// heads with the recurrent core frozen. Both follow docs/reference/model.md.
//
// The graph, built with GoMLX, computes loss terms and gradients and nothing
// else. Everything that changes from step to step (weights, moments, the order
// of batches, noise) is plain Go on the host: a training is a function of config
// and data, and a checkpoint is its whole state.
//
// Runs longer than max_steps are cut to a window: one that ends with the hazard
// where that is located, else any part, drawn anew every epoch. A window that does
// not begin at the first step starts from the state that the task gives, as if
// the run began there, but with the result that came before it.
//
// [Evaluator] runs the same graph without noise, from the first step and to any
// length, the way the runtime does.
package train
