// Package checkpoints keeps the state of a training run on disk such that a run
// that was killed at any moment continues as if nothing had happened. A
// [Checkpoint] is one file; [Save] writes it atomically and keeps the last two,
// [Load] returns the newest one whose content is whole.
//
//	err := checkpoints.Save(dir, &checkpoints.Checkpoint{
//		Step: 200, Config: configDigest, Data: dataDigest,
//		State: state, Tensors: tensors,
//	})
//
//	c, skipped, err := checkpoints.Load(dir, configDigest, dataDigest)
//	switch {
//	case errors.Is(err, checkpoints.ErrNone):     // a fresh start
//	case errors.Is(err, checkpoints.ErrMismatch): // another config or other data: refuse
//	}
//
// A checkpoint is a safetensors file, so that any tool for the format can look
// into it, named step-STEP.SHA256.safetensors after the digest of all its bytes.
package checkpoints
