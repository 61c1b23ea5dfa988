package calib

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// PValue returns the conformal p-value of a score against those of n
// calibration runs: how usual so high a score is,
//
//	p = (#{i: s_i >= s} + 1) / (n + 1)
//
// For a run exchangeable with them P(p <= a) <= a for every a. sorted rises.
//
// Source: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World,
// section 2.2.
func PValue(sorted []float64, score float64) float64 {
	i, _ := slices.BinarySearch(sorted, score)
	return float64(len(sorted)-i+1) / float64(len(sorted)+1)
}

// gridPoints is the number of grid points in [0, 1].
const gridPoints = 1<<16 + 1

// ErrHistogram is returned for a stored histogram that cannot be one.
var ErrHistogram = errors.New("calib: invalid histogram")

// Histogram counts scores on the grid. Adding and ranking take a few dozen
// steps whatever the count, and it needs a quarter of a megabyte. It is made by
// [NewHistogram] or read from JSON: {"limit": point, "counts": [[point, count],
// ...]} with points as whole numbers from 0 to 65536, rising. The zero value is
// empty and has no cap.
type Histogram struct {
	tree  []uint32 // Fenwick tree of counts: tree[i] sums the counts of the i & -i points that end at i-1
	n     uint32
	limit float64 // scores are capped here
}

// NewHistogram returns the histogram of scores, each capped at limit: pass the
// hold level in force, since a run that was stopped there has no maximum, and 1
// or [Off] for no cap. Errors: [ErrScore].
func NewHistogram(scores []float64, limit float64) (*Histogram, error) {
	if !(limit >= GridStep) {
		return nil, fmt.Errorf("calib: %w: the cap is %v, want a grid point above 0", ErrLevel, limit)
	}
	h := &Histogram{limit: Grid(min(limit, 1))}
	for i, s := range scores {
		if !(s >= 0 && s <= 1) {
			return nil, fmt.Errorf("calib: %w: scores[%d] is %v", ErrScore, i, s)
		}
		h.add(h.point(s), 1)
	}
	return h, nil
}

// Clone returns a copy that counts on its own.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{tree: slices.Clone(h.tree), n: h.n, limit: h.limit}
}

// N returns the number of scores.
func (h *Histogram) N() int { return int(h.n) }

// Limit returns the cap.
func (h *Histogram) Limit() float64 {
	if h.limit == 0 {
		return 1
	}
	return h.limit
}

func (h *Histogram) point(score float64) int { return int(Grid(min(score, h.Limit())) / GridStep) }

func (h *Histogram) add(point int, count uint32) {
	if h.tree == nil {
		h.tree = make([]uint32, gridPoints+1)
	}
	h.n += count
	for i := point + 1; i <= gridPoints; i += i & -i {
		h.tree[i] += count
	}
}

// upTo returns the count of the points up to and including this one.
func (h *Histogram) upTo(point int) (c uint32) {
	if h.tree == nil {
		return 0
	}
	for i := point + 1; i > 0; i -= i & -i {
		c += h.tree[i]
	}
	return c
}

// Add returns the smoothed conformal p-value of a score among all scores so far,
// itself included, and then counts it:
//
//	p = (#{i: s_i > s} + u (#{i: s_i = s} + 1)) / (n + 1)
//
// With u uniform on [0, 1] and independent, and all scores exchangeable, the
// p-values of successive calls are independent and uniform, ties or not: it is
// the online mode, in which every score joins those it is compared with. score
// in [0, 1]; others, NaN too, are an [ErrScore] and are not counted.
//
// Source: Algorithmic Learning in a Random World, section 2.2 (smoothed
// conformal predictors) and the chapter on testing exchangeability.
func (h *Histogram) Add(score, u float64) (float64, error) {
	if !(score >= 0 && score <= 1) {
		return 0, fmt.Errorf("calib: %w: it is %v", ErrScore, score)
	}
	if h.n == math.MaxUint32 {
		return 0, fmt.Errorf("%w: it is full", ErrHistogram)
	}
	point := h.point(score)
	upTo, below := h.upTo(point), h.upTo(point-1)
	p := (float64(h.n-upTo) + u*float64(upTo-below+1)) / float64(h.n+1)
	h.add(point, 1)
	return p, nil
}

type histogramJSON struct {
	Limit  int      `json:"limit"`  // grid point
	Counts [][2]int `json:"counts"` // grid point, count; points rise
}

// MarshalJSON writes the counts that are not 0.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	j := histogramJSON{Limit: int(h.Limit() / GridStep), Counts: [][2]int{}}
	var before uint32
	for p := range gridPoints {
		if c := h.upTo(p); c != before {
			j.Counts = append(j.Counts, [2]int{p, int(c - before)})
			before = c
		}
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. Errors: [ErrHistogram].
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var j histogramJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("%w: %w", ErrHistogram, err)
	}
	if j.Limit < 1 || j.Limit >= gridPoints {
		return fmt.Errorf("%w: limit is %d, want 1 to %d", ErrHistogram, j.Limit, gridPoints-1)
	}
	next := Histogram{limit: float64(j.Limit) * GridStep}
	last := -1
	for _, c := range j.Counts {
		point, count := c[0], c[1]
		if point <= last || point > j.Limit || count < 1 || int64(count)+int64(next.n) > math.MaxUint32 {
			return fmt.Errorf("%w: count %d at %d after %d: want rising points up to %d and counts above 0", ErrHistogram, count, point, last, j.Limit)
		}
		next.add(point, uint32(count))
		last = point
	}
	*h = next
	return nil
}
