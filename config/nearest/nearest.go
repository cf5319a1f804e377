// Package nearest finds the known word that a mistyped one was probably meant to be.
package nearest

import "strings"

// Word returns the candidate closest to word and its distance in edits (insert, delete, replace, swap of neighbours),
// ignoring case. It returns "" when none is near enough to be worth naming: more than a third of the longer word, and
// always more than three edits. Of equally near candidates the first wins.
func Word(word string, candidates []string) (best string, distance int) {
	w := []rune(strings.ToLower(word))
	if len(w) > 64 {
		return "", 0
	}
	distance = 4
	for _, c := range candidates {
		r := []rune(strings.ToLower(c))
		limit := max(len(w), len(r)) / 3
		if limit == 0 {
			limit = 1
		}
		if len(r) > 64 {
			continue
		}
		if d := edits(w, r); d <= limit && d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return "", 0
	}
	return best, distance
}

// edits is the optimal string alignment distance.
func edits(a, b []rune) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
