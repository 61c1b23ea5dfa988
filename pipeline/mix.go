package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/calib"
)

// Mix says that live traffic has other shares of some kinds of runs than the
// traces, while runs of a kind are alike: covariate shift.
type Mix struct {
	Field  string             // of the traces, as in calib.Request.By
	Shares map[string]float64 // of live runs by value; scaled to sum to 1
}

// ErrMix is wrapped by errors about a mix.
var ErrMix = errors.New("mix")

// ParseMix reads field=value:share,value:share, shares in any unit.
func ParseMix(text string) (*Mix, error) {
	field, list, ok := strings.Cut(text, "=")
	if !ok || field == "" || list == "" {
		return nil, fmt.Errorf("%w: %.60q: want FIELD=VALUE:SHARE,VALUE:SHARE, such as suite=banking:70,travel:30", ErrMix, text)
	}
	m := &Mix{Field: field, Shares: map[string]float64{}}
	for part := range strings.SplitSeq(list, ",") {
		at := strings.LastIndexByte(part, ':')
		if at < 0 {
			return nil, fmt.Errorf("%w: %.60q has no share: want VALUE:SHARE", ErrMix, part)
		}
		value, number := part[:at], strings.TrimSuffix(part[at+1:], "%")
		share, err := strconv.ParseFloat(number, 64)
		if err != nil || !(share >= 0 && share <= 1e12) {
			return nil, fmt.Errorf("%w: the share of %.60q is %.30q: want a number, 0 or more", ErrMix, value, part[at+1:])
		}
		if _, twice := m.Shares[value]; twice {
			return nil, fmt.Errorf("%w: %.60q has two shares", ErrMix, value)
		}
		m.Shares[value] = share
	}
	return m, nil
}

// Validate checks that m, which may be nil, goes together with what is asked for.
func (m *Mix) Validate(r *calib.Request) error {
	if m == nil {
		return nil
	}
	weighted := *r
	weighted.Shift = &calib.Shift{Weight: func(*calib.Scored) float64 { return 1 }}
	if err := weighted.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrMix, err)
	}
	return nil
}

// shift returns the weights of the runs: the shares of live traffic over those of
// the tuning part's safe runs, which the thresholds do not rest on. As where
// thresholds are set, unlabelled runs are safe only if declared so, and copies
// count once.
func (m *Mix) shift(runs []candidate, tuning []calib.Scored, assumeSafe bool) (*calib.Shift, error) {
	kinds := make(map[string]string, len(runs))
	for i := range runs {
		kinds[runs[i].fingerprint] = runs[i].mix
	}
	seen := map[string]bool{}
	var safe []calib.Scored
	for _, s := range tuning {
		if seen[s.Fingerprint] || s.Label == calib.Unsafe || s.Label == calib.Unlabelled && !assumeSafe {
			continue
		}
		seen[s.Fingerprint] = true
		safe = append(safe, s)
	}
	s, err := calib.ShareShift(safe, func(s *calib.Scored) string { return kinds[s.Fingerprint] }, m.Shares)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMix, err)
	}
	return s, nil
}
