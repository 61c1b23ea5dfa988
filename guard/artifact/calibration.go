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
}

// Thresholds are grid points in (0, 1]; nil is off.
type Thresholds struct {
	Hold  *float64 `json:"hold"`  // HOLD where S >= Hold
	Block *float64 `json:"block"` // BLOCK where p_haz >= Block
}

// Certificate says what the thresholds promise, and on which data.
type Certificate struct {
	Alpha           float64 `json:"alpha"`            // bound on P(HOLD or BLOCK) for a safe run like those calibrated on
	AlphaBlock      float64 `json:"alpha_block"`      // share of it spent on BLOCK
	N               int     `json:"n"`                // scored safe runs
	Groups          int     `json:"groups"`           // groups they come from; runs that share a task share a group
	KHold           int     `json:"k_hold"`           // rank of the score that Hold lies just above; 0 = not set
	KBlock          int     `json:"k_block"`          // likewise for Block
	Alerted         int     `json:"alerted"`          // calibration runs that would be held or blocked
	NoGuarantee     bool    `json:"no_guarantee"`     // n was too small and the rank was clamped: nothing is promised
	DataFingerprint string  `json:"data_fingerprint"` // sha256 of the conformal set
	Created         string  `json:"created"`          // RFC 3339, or empty
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
		return nil, fmt.Errorf("%s: %w: it was edited: run calibrate again rather than change it by hand", CalibrationFile, ErrCalibration)
	}
	if c.ModelDigest != modelDigest {
		return nil, fmt.Errorf("%s: %w: it is for model %.12s, this is %.12s: run calibrate on this artifact", CalibrationFile, ErrCalibrationModel, c.ModelDigest, modelDigest)
	}
	return c, nil
}
