// Package boltstore is the store engine on bbolt: one file, one process, fsync on every commit.
//
// # Commits
//
// Every write is a function of a transaction, handed to one committer goroutine. Whatever queued up while the last commit
// was on its way to the disk goes into the next one; a lone write commits at once. A function that fails is taken out,
// so one caller's error never costs another its write; only when it had written something are the others run again without
// it. Functions may therefore run more than once. JSON is made before, in the caller's goroutine, as there is one committer.
//
// # Keys
//
// A composite key is a sequence of parts, each escaped and terminated (see [key]), so that no two sequences of parts give
// the same key and a prefix of parts is a prefix of the key, whatever bytes platform ids hold. Numbers are eight bytes,
// big-endian. Ids are UUIDv7, so records sort by time and pages fill in order.
//
// # Records
//
// What changes often is kept apart from what is large: a run's state from its input, a thread's head from its record, a
// small header before the JSON of inbox and outbox entries. What belongs to one thread or one run lies side by side in one
// bucket, as every bucket that a commit touches costs it pages. Nothing that a step writes grows with its thread.
//
// # Damage
//
// Open walks all pages before bbolt sees the file, under its lock, because bbolt ends the process when it meets garbage. A
// page that is lost later is a [*DamagedError] of the call that met it, and of every write after it. The list of free pages
// is stored by Close only: a commit need not write it, and only an Open after a crash has to find them by a scan.
//
// # Rules bbolt asks for
//
// No transaction is opened inside another; nothing slow (no callback, no network, no channel) happens in one; what leaves
// one is a copy. Deleting during a scan collects keys first.
package boltstore
