package guard

import "errors"

// Errors. They come wrapped in a message that says what to do: test with
// errors.Is. What is wrong with the artifact itself is an error of
// guard/artifact.
var (
	// ErrNotCalibrated: the artifact has no thresholds, and ScoresOnly was not given.
	ErrNotCalibrated = errors.New("guard: artifact is not calibrated")
	// ErrCalibration: what was given to WithCalibration is not a calibration of the
	// artifact's model. The errors of artifact.ParseCalibration are wrapped as well.
	ErrCalibration = errors.New("guard: calibration")
	// ErrEncoderRequired: the artifact's encoder is not built in, and WithEncoder was not given.
	ErrEncoderRequired = errors.New("guard: artifact needs its encoder")
	// ErrEncoder: the encoder is not the one trained with, or it failed.
	ErrEncoder = errors.New("guard: encoder")
	// ErrFeatures: this build computes other call features than the model was trained with.
	ErrFeatures = errors.New("guard: feature set")
	// ErrOption: an option is out of range.
	ErrOption = errors.New("guard: bad option")
	// ErrNotJudged: the call is not the one that was last judged.
	ErrNotJudged = errors.New("guard: not the call that was judged last")
	// ErrExecuted: the call was executed, its Commit failed and must be tried again.
	ErrExecuted = errors.New("guard: the call was executed and is not recorded yet")
	// ErrState: a serialised session is damaged, or of another version.
	ErrState = errors.New("guard: bad session state")
	// ErrStateModel: a serialised session belongs to another model or calibration.
	ErrStateModel = errors.New("guard: session state of another model")
)
