// Package boltstore is the store engine on bbolt: one file, one process, fsync on every commit.
//
// # Commits
//
// Every write is a function of a transaction, handed to one committer goroutine. Whatever queued up while the last commit
// was on its way to the disk goes into the next one; a lone write commits at once. A function that fails is taken out
// and the others are run again without it, so one caller's error never costs another its write.
//
// # Keys
//
// A composite key is a sequence of parts, each escaped and terminated (see [key]), so that no two sequences of parts give
// the same key and a prefix of parts is a prefix of the key, whatever bytes platform ids hold. Numbers are eight bytes,
// big-endian. Ids are UUIDv7, so records sort by time and pages fill in order.
//
// # Rules bbolt asks for
//
// No transaction is opened inside another; nothing slow (no callback, no network, no channel) happens in one; what leaves
// one is a copy. Deleting during a scan collects keys first.
package boltstore
