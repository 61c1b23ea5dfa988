package artifact

import "errors"

// Errors of [Open], [OpenFS] and [Manifest.Validate]. They come wrapped in a
// message that names the file, the field and what to do: test with errors.Is.
// Damage within model.safetensors is also an error of internal/safetensors.
var (
	// ErrFormat: the format version is not one that this build reads.
	ErrFormat = errors.New("unknown format version")
	// ErrManifest: manifest.json is malformed, was edited, or has a value out of range.
	ErrManifest = errors.New("bad manifest")
	// ErrMissing: a file of the artifact is not there.
	ErrMissing = errors.New("file is missing")
	// ErrTooLarge: a file is larger than any sound artifact's.
	ErrTooLarge = errors.New("file is too large")
	// ErrPath: a path or symbolic link leads out of the folder, or to something
	// that is not a regular file.
	ErrPath = errors.New("path is not a regular file of the artifact")
	// ErrTar: the file is not an uncompressed tar of an artifact.
	ErrTar = errors.New("not an uncompressed tar")
	// ErrDigest: a file is not the one that the manifest lists.
	ErrDigest = errors.New("digest mismatch")
	// ErrWeights: model.safetensors cannot be parsed.
	ErrWeights = errors.New("bad weights file")
	// ErrTensorMissing: a tensor of docs/reference/model.md is not there.
	ErrTensorMissing = errors.New("tensor is missing")
	// ErrTensorExtra: a tensor does not belong to the model.
	ErrTensorExtra = errors.New("unknown tensor")
	// ErrTensorShape: a tensor has another shape than the manifest's sizes give it.
	ErrTensorShape = errors.New("wrong tensor shape")
	// ErrTensorValue: a value is NaN or infinite, or a feature scale is not positive.
	ErrTensorValue = errors.New("bad tensor value")
	// ErrCalibration: calibration.json is malformed, was edited, or has a value out of range.
	ErrCalibration = errors.New("bad calibration")
	// ErrCalibrationModel: calibration.json belongs to another model.
	ErrCalibrationModel = errors.New("calibration of another model")
)
