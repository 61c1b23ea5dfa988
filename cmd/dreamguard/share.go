package main

import (
	"math/big"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// share is the value of a flag that takes a part of a whole: 5%, 0.05 or 5/100,
// more than 0 and less than 1. What was left out is 0.
type share float64

var _ pflag.Value = (*share)(nil)

var shareForm = regexp.MustCompile(`^([0-9]{0,12}(?:\.[0-9]{1,12})?)\s*(%|/\s*([0-9]{1,12}))?$`)

func (s *share) Set(text string) error {
	m := shareForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil || m[1] == "" {
		return usagef("want a share such as 5%%, 0.05 or 5/100")
	}
	// Exact, so that 5% and 0.05 are one number, and ranks are those of the decimal
	// that was written.
	r, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return usagef("want a share such as 5%%, 0.05 or 5/100")
	}
	switch {
	case m[2] == "%":
		r.Quo(r, big.NewRat(100, 1))
	case m[2] != "":
		whole, ok := new(big.Rat).SetString(m[3])
		if !ok || whole.Sign() == 0 {
			return usagef("want a share such as 5/100")
		}
		r.Quo(r, whole)
	}
	if r.Sign() <= 0 || r.Cmp(big.NewRat(1, 1)) >= 0 {
		return usagef("is not between 0 %% and 100 %%, which are no bounds: want a share such as 5%%")
	}
	f, _ := r.Float64()
	*s = share(f)
	return nil
}

func (s *share) String() string {
	if *s == 0 {
		return ""
	}
	r := new(big.Rat)
	r.SetFloat64(float64(*s) * 100)
	return strings.TrimRight(strings.TrimRight(r.FloatString(6), "0"), ".") + "%"
}

// Type names the value in the help.
func (s *share) Type() string { return "share" }
