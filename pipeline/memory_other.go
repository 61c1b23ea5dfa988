//go:build !linux

package pipeline

// peakMiB is not known on this system: 0.
func peakMiB() float64 { return 0 }
