// Package suggest finds the word that somebody probably meant, for error
// messages about unknown keys, verbs and flags.
//
//	if near, ok := suggest.Nearest("hiden", []string{"hidden", "factors"}); ok {
//		return fmt.Errorf("unknown key hiden: did you mean %s?", near)
//	}
package suggest

import "strings"

// Nearest returns the candidate with the smallest edit distance to word, the
// first of several. It reports false when none is near: further away than two
// edits, or than a third of the word's length where that is more.
func Nearest(word string, candidates []string) (string, bool) {
	limit := max(2, len(word)/3)
	best, found := "", false
	for _, c := range candidates {
		// A word whose every letter would have to change is no typing error.
		if d := Distance(word, c); d <= limit && d < max(len(word), len(c)) {
			best, found, limit = c, true, d-1
		}
	}
	return best, found
}

// Distance returns how many insertions, deletions, replacements and swaps of
// neighbouring bytes turn a into b, letter case aside (the optimal string
// alignment distance).
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
