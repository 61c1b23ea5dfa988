//go:build race

package tokenize

func init() { raceEnabled = true }
