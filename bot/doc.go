// Package bot is the conductor, and the only place where chat meets runtime.
//
//	inbox    a platform event is gated, deduped and committed; only then is it acknowledged
//	actor    one per conversation: takes committed messages in order; a command acts, a message becomes a run
//	follower one per run: folds the run's events into a card, and at End makes the final answer
//	outbox   what shall be sent is committed before the call and completed after it; one sender per chat keeps order
//	gate     the budget of calls: penalties, buckets; finals go first, edits wait
//
// # Exactly once, as far as platforms allow
//
// Every step has an idempotency key: the inbox dedupes by the platform's event, the run by its inbox entry, the outbox
// record by its run or entry. A crash between any two steps repeats the second, which finds the first one's work done.
// The inbox entry is settled in the transaction that records the delivery of its reply, so at a restart the unsettled
// entries are exactly the unanswered ones.
//
// A send whose answer was lost cannot be told from one that never arrived, where a platform neither dedupes nor lets bots
// read back. Edits are repeated, they are idempotent; a new message is sent once more and says that it may be a second
// copy. See [deliver].
//
// # Locks
//
// Bot.mu guards the maps of actors, followers and senders and is never held over a store or platform call.
package bot
