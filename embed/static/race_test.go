//go:build race

package static_test

func init() { raceEnabled = true }
