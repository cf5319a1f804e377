// Package config reads, checks and describes deerbot's configuration.
//
// [Load] finds the file (named, $DEERBOT_CONFIG, ./config.yaml) or does without one, expands ${NAME} in values, fills
// credentials from the environment and validates everything; its error tells every fault at once, each with key and
// line, and never a value of the file, because the value next to a mistake may be a key.
//
// The Go types are the only source: their tags carry the words, bounds and allowed values from which the decoder, the
// JSON Schema ([Schema]), the example file ([Example]) and the reference page ([Reference]) are made.
//
// A running daemon uses [Watch] to learn of changes, [Diff] to tell which of them apply at once, and [Apply] to take
// over only those. [NotYet] names keys that are set although their feature is not there, [Warnings] what is allowed but
// probably not meant.
package config
