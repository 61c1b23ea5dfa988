// Package artifact defines the frozen artifact: the folder in which a trained
// model leaves training and from which package guard runs it. Writer and reader
// share this one definition.
//
//	a, err := artifact.Open("runs/p1/artifact") // or an uncompressed tar of it
//	fmt.Println(a.Digest, a.Manifest.Encoder, a.Calibration != nil)
//
// The folder holds
//
//	manifest.json       what the model is, and the sha256 of the files below
//	model.safetensors   the tensors of docs/reference/model.md, see Tensors
//	features.json       the token weights of the call features
//	encoder.safetensors the table of a static encoder, unless the manifest's digest has to do
//	trained.bin         fingerprints of the runs trained on, see RunDigest
//	calibration.json    fusion and thresholds; missing until calibrated
//	README.md           the model card; never read
//
// An [Artifact] is wholly checked or not returned: every listed file has its
// digest, the tensors are exactly those of the manifest's sizes, all finite, and
// the calibration belongs to this model. The model digest is the sha256 of
// manifest.json, which names every other file that determines a score.
package artifact
