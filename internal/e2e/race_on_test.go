//go:build race

package e2e

// raced builds the daemon with the race detector too.
const raced = true
