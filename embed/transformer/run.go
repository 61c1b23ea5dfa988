package transformer

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// run computes all sequences and calls use with the part of the output that
// belongs to each, which is only valid during the call.
func (e *Encoder) run(ctx context.Context, exec *graph.Exec, ids [][]int32, use func(i int, out []float32)) error {
	lengths := make([]int, len(ids))
	for i, s := range ids {
		if len(s) == 0 || len(s) > e.options.MaxTokens {
			return fmt.Errorf("%w: sequence %d has %d tokens, want 1 to %d", ErrInput, i, len(s), e.options.MaxTokens)
		}
		for _, id := range s {
			// A backend would take the nearest row and not complain.
			if id < 0 || int(id) >= e.config.Vocab {
				return fmt.Errorf("%w: sequence %d has the token id %d, and the vocabulary %d tokens", ErrInput, i, id, e.config.Vocab)
			}
		}
		lengths[i] = len(s)
	}
	for _, s := range e.grid.plan(lengths) {
		if err := e.step(ctx, exec, s, ids, use); err != nil {
			return err
		}
	}
	return nil
}

// step runs the graph once.
func (e *Encoder) step(ctx context.Context, exec *graph.Exec, s step, ids [][]int32, use func(i int, out []float32)) error {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	flat := make([]int32, s.rows*s.length)
	lens := make([]int32, s.rows)
	for r := range lens {
		lens[r] = 1 // a row of padding still has to have a token to look at
	}
	for r, i := range s.items {
		copy(flat[r*s.length:], ids[i])
		lens[r] = int32(len(ids[i]))
	}
	args := make([]any, 0, len(e.weights)+2)
	for _, w := range e.weights {
		args = append(args, w)
	}
	a := tensors.FromFlatDataAndDimensions(flat, s.rows, s.length)
	b := tensors.FromFlatDataAndDimensions(lens, s.rows)
	defer a.FinalizeAll()
	defer b.FinalizeAll()
	out, err := exec.Call1(append(args, a, b)...)
	if err != nil {
		return fmt.Errorf("batch of %d by %d tokens: %w", s.rows, s.length, err)
	}
	defer out.FinalizeAll()
	return tensors.ConstFlatData(out, func(values []float32) {
		per := len(values) / s.rows
		for r, i := range s.items {
			use(i, values[r*per:(r+1)*per])
		}
	})
}
