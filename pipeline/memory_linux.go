package pipeline

import "golang.org/x/sys/unix"

// peakMiB returns the largest resident memory of the process so far.
func peakMiB() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024 // kilobytes on Linux
}
