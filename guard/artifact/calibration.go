package artifact

import (
	"bytes"
	"fmt"

	"github.com/dreamguard/dreamguard/calib"
)

// CalibrationSchema names the form of calibration.json.
const CalibrationSchema = "dreamguard.calibration/v1"

// Calibration turns the scores of one model into decisions. It can be replaced
// without touching the model: it names the model it belongs to, and carries a
// digest of its own.
type Calibration struct {
	Schema      string       `json:"schema"`       // CalibrationSchema
	ModelDigest string       `json:"model_digest"` // the model it belongs to
	Digest      string       `json:"digest"`       // sha256 of this record with an empty digest
	Fusion      calib.Fusion `json:"fusion"`
	Thresholds  Thresholds   `json:"thresholds"`
	Certificate Certificate  `json:"certificate"`

	// What a recalibration adds; calibrations without it stay readable.
	By        []string           `json:"by,omitempty"`        // fields of a run whose values choose its plan, coarse ones first
	Plans     *calib.Calibration `json:"plans,omitempty"`     // every promise, and the levels of groups; Thresholds are those of its default plan
	Reference *calib.Histogram   `json:"reference,omitempty"` // risks of the calibration runs, for a monitor: capped at the lowest hold level, runs that BLOCK stops at the cap
}

// Levels returns the two levels for a run with these values of the fields By,
// [calib.Off] where off. Without a plan of its own a run has the default ones.
func (c *Calibration) Levels(path []string) (hold, block float64) {
	if c.Plans == nil || len(path) == 0 {
		return c.Thresholds.Levels()
	}
	p := c.Plans.For(path)
	return p.Hold.Value, p.Block.Value
}

// Bounds on the groups of a calibration.
const (
	maxBy    = 16
	maxValue = 1 << 10 // bytes of a field's name or value
)

// Thresholds are grid points in (0, 1]; nil is off.
type Thresholds struct {
	Hold  *float64 `json:"hold"`  // HOLD where S >= Hold
	Block *float64 `json:"block"` // BLOCK where p_haz >= Block
}

// Certificate says what the thresholds promise, and on which data.
type Certificate struct {
	Alpha           float64 `json:"alpha"`                // bound on P(HOLD or BLOCK) for a safe run like those calibrated on
	AlphaBlock      float64 `json:"alpha_block"`          // share of it spent on BLOCK
	Confidence      float64 `json:"confidence,omitempty"` // with which the bounds hold over the draw of the runs; 0: on average over it
	N               int     `json:"n"`                    // scored safe runs
	Groups          int     `json:"groups"`               // groups they come from; runs that share a task share a group
	KHold           int     `json:"k_hold"`               // rank of the score that Hold lies just above; 0 = not set
	KBlock          int     `json:"k_block"`              // likewise for Block
	Alerted         int     `json:"alerted"`              // calibration runs that would be held or blocked
	NoGuarantee     bool    `json:"no_guarantee"`         // n was too small and the rank was clamped: nothing is promised
	DataFingerprint string  `json:"data_fingerprint"`     // sha256 of the conformal set
	Created         string  `json:"created"`              // RFC 3339, or empty
}

// NewThresholds takes over what calibration found.
func NewThresholds(t calib.Thresholds) Thresholds {
	level := func(x calib.Threshold) *float64 {
		if x.IsOff() {
			return nil
		}
		return &x.Value
	}
	return Thresholds{Hold: level(t.Hold), Block: level(t.Block)}
}

// Levels returns the two levels as numbers, [calib.Off] where nil.
func (t Thresholds) Levels() (hold, block float64) {
	hold, block = calib.Off, calib.Off
	if t.Hold != nil {
		hold = *t.Hold
	}
	if t.Block != nil {
		block = *t.Block
	}
	return hold, block
}

// Validate checks every field but the digests. The error names the field and
// wraps [ErrCalibration].
func (c *Calibration) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrCalibration, fmt.Sprintf(format, a...))
	}
	if c.Schema != CalibrationSchema {
		return bad("schema is %.40q: want %s", c.Schema, CalibrationSchema)
	}
	if !isDigest(c.ModelDigest) {
		return bad("model_digest is %.20q: want a sha256 in hex", c.ModelDigest)
	}
	if err := c.Fusion.Validate(); err != nil {
		return fmt.Errorf("%w: fusion: %w", ErrCalibration, err)
	}
	for _, t := range []struct {
		name  string
		level *float64
	}{{"hold", c.Thresholds.Hold}, {"block", c.Thresholds.Block}} {
		if t.level != nil && !(*t.level > 0 && *t.level <= 1 && calib.Grid(*t.level) == *t.level) {
			return bad("thresholds.%s is %v: want a multiple of 2^-16 above 0 and up to 1, or null for off", t.name, *t.level)
		}
	}
	cert := &c.Certificate
	switch {
	case !(cert.Alpha >= 0 && cert.Alpha <= 1 && cert.AlphaBlock >= 0 && cert.AlphaBlock <= cert.Alpha):
		return bad("certificate.alpha is %v with alpha_block %v: want 0 <= alpha_block <= alpha <= 1", cert.Alpha, cert.AlphaBlock)
	case cert.N < 0 || cert.Groups < 0 || cert.Alerted < 0 || cert.Alerted > cert.N ||
		cert.KHold < 0 || cert.KHold > cert.N || cert.KBlock < 0 || cert.KBlock > cert.N:
		return bad("certificate has a count out of range")
	case !(cert.Confidence >= 0 && cert.Confidence < 1):
		return bad("certificate.confidence is %v: want 0 to below 1", cert.Confidence)
	}
	return c.validatePlans(bad)
}

// validatePlans checks what a recalibration adds.
func (c *Calibration) validatePlans(bad func(string, ...any) error) error {
	if len(c.By) > maxBy {
		return bad("by names %d fields: want at most %d", len(c.By), maxBy)
	}
	for i, name := range c.By {
		if name == "" || len(name) > maxValue {
			return bad("by[%d] has %d bytes: want 1 to %d", i, len(name), maxValue)
		}
	}
	if c.Plans == nil {
		if len(c.By) > 0 {
			return bad("by names fields, and there are no plans")
		}
		return nil
	}
	if err := c.Plans.Validate(); err != nil {
		return fmt.Errorf("%w: plans: %w", ErrCalibration, err)
	}
	for i := range c.Plans.Plans {
		p := &c.Plans.Plans[i]
		if len(p.Path) > len(c.By) {
			return bad("plans.plans[%d] has a path of %d values for %d fields", i, len(p.Path), len(c.By))
		}
		for _, v := range p.Path {
			if len(v) > maxValue {
				return bad("plans.plans[%d] has a value of %d bytes: want at most %d", i, len(v), maxValue)
			}
		}
	}
	hold, block := c.Thresholds.Levels()
	if p := &c.Plans.Plans[0]; p.Hold.Value != hold || p.Block.Value != block {
		return bad("thresholds are not those of the default plan")
	}
	return nil
}

// Marshal sets Schema and Digest, validates c and returns its canonical JSON.
func (c *Calibration) Marshal() ([]byte, error) {
	c.Schema = CalibrationSchema
	if err := c.Validate(); err != nil {
		return nil, err
	}
	sum, err := c.sum()
	if err != nil {
		return nil, err
	}
	c.Digest = sum
	return canonical(c)
}

func (c *Calibration) sum() (string, error) {
	unsigned := *c
	unsigned.Digest = ""
	b, err := canonical(&unsigned)
	if err != nil {
		return "", err
	}
	return Sum(b), nil
}

// ParseCalibration reads calibration.json for the model with the given digest.
func ParseCalibration(b []byte, modelDigest string) (*Calibration, error) {
	c := new(Calibration)
	if err := strict(b, c); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", CalibrationFile, ErrCalibration, err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", CalibrationFile, err)
	}
	sum, err := c.sum()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", CalibrationFile, ErrCalibration, err)
	}
	if again, err := canonical(c); err != nil || sum != c.Digest || !bytes.Equal(again, b) {
		return nil, fmt.Errorf("%s: %w: it was edited: put an earlier one in force with \"dreamguard calibration revert\", or remove the file and recalibrate", CalibrationFile, ErrCalibration)
	}
	if c.ModelDigest != modelDigest {
		return nil, fmt.Errorf("%s: %w: it is for model %.12s, this is %.12s: run recalibrate on this artifact", CalibrationFile, ErrCalibrationModel, c.ModelDigest, modelDigest)
	}
	return c, nil
}
