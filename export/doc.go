// Package export writes the frozen artifact, whose form package guard/artifact
// defines.
//
//	digest, err := export.Write("runs/p1/artifact", export.Input{Weights: weights, Dims: dims, ...})
//	err = export.WriteCalibration("runs/p1/artifact", calibration) // later
//	err = export.WriteCard("runs/p1/artifact", manifest, report)   // later still
//
// [Write] leaves either the old artifact or the new one, never a mixture, and
// returns only after the loader has accepted what was written.
package export
