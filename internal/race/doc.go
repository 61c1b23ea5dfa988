// Package race tells tests whether the race detector is on, under which a
// sync.Pool drops values at random, so that allocations cannot be counted.
//
//	if race.Enabled {
//		t.Skip("sync.Pool drops items at random under the race detector")
//	}
package race
