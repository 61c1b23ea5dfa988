package train

import (
	"context"
	"errors"
	"testing"

	"github.com/dreamguard/dreamguard/internal/backend"
)

func TestMeasureRate(t *testing.T) {
	r, err := MeasureRate(context.Background(), backend.Go, 0)
	if err != nil || !(r.StepsPerSecond > 0) || !(r.FirstSeconds > 0) {
		t.Errorf("got %+v, error %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := MeasureRate(ctx, backend.Go, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := MeasureRate(context.Background(), "tpu", 0); !errors.Is(err, backend.ErrUnknown) {
		t.Errorf("unknown backend: %v", err)
	}
}
