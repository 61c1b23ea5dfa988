//go:build race

package hash_test

func init() { raceEnabled = true }
