// Package archtest holds the architecture: which package may import which, and that every package says what it is for.
// It has tests only. A new edge that breaks a rule is either a mistake or a decision; a decision changes the rule here,
// with its reason.
package archtest
