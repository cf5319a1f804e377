// Package crash holds the labelled points at which the crash tests kill the daemon.
//
// A point does nothing unless the binary was built with the tag crashtest and DEERBOT_CRASH names its label, optionally
// with a count ("outbox.sent:3" is the third time). Then the process kills itself as kill -9 would: no deferred function
// runs, nothing is flushed.
package crash

// Labels of all points, in the order a message passes them.
const (
	InboxCommitted   = "inbox.committed"   // the message is on disk, the platform not yet told
	InboxAcked       = "inbox.acked"       // the platform was told
	RunAdmitted      = "run.admitted"      // the run exists, the inbox entry is not marked taken
	ModelStreaming   = "model.streaming"   // in the middle of the answer
	StepCommitted    = "step.committed"    // the calls are on disk, no tool has run
	ToolRunning      = "tool.running"      // a tool acts
	ToolsDone        = "tools.done"        // tools have acted, their results are not on disk
	FinishBefore     = "finish.before"     // the answer stands, the terminal transaction is not made
	FinishAfter      = "finish.after"      // the run is over, nothing of its answer is in the outbox
	OutboxIntent     = "outbox.intent"     // the final is in the outbox, not sent
	EditBefore       = "edit.before"       // the final edit is about to be called
	EditAfter        = "edit.after"        // the final edit was carried out, the record is not completed
	PartSent         = "part.sent"         // a part of a long answer was sent and recorded, the next was not
	OutboxCompleted  = "outbox.completed"  // all is recorded
	PlaceholderAfter = "placeholder.after" // the card was posted, its id is not recorded
	PlaceholderKnown = "placeholder.known" // the card's id is recorded
)

// Labels lists them.
func Labels() []string {
	return []string{
		InboxCommitted, InboxAcked, RunAdmitted, ModelStreaming, StepCommitted, ToolRunning, ToolsDone, FinishBefore,
		FinishAfter, OutboxIntent, EditBefore, EditAfter, PartSent, OutboxCompleted, PlaceholderAfter, PlaceholderKnown,
	}
}
