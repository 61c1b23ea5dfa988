// Package pipeline strings the stages together: data, embed, train, export,
// calibrate, eval. Each stage reads what the former wrote into the run folder
// (docs/reference/run-folder.md), skips itself when nothing it depends on has
// changed, and can be interrupted and started again.
//
//	run, err := pipeline.Open("runs/p1", cfg, pipeline.Options{DataDir: dir, Progress: p})
//	err = run.All(ctx)         // or one stage: run.Train(ctx)
//	report, err := run.Report()
//
// It is the only package that knows all the others; it holds no mathematics.
package pipeline
