package boltstore

// Buckets and what their keys are. conv stands for the four parts of a conversation key, time for eight bytes.
var (
	bMeta       = []byte("meta")        // name
	bInbox      = []byte("inbox")       // entry id -> header (see inboxHeader), entry
	bInboxQueue = []byte("inbox.queue") // conv, seq -> entry id; pending entries only
	bDedupe     = []byte("dedupe")      // channel, workspace, chat, dedupe key -> time
	bDedupeTime = []byte("dedupe.time") // time, the key above
	bConv       = []byte("conv")        // conv
	bConvMsg    = []byte("conv.msg")    // channel, workspace, chat, message id -> topic, id of the inbox entry
	bThread     = []byte("thread")      // thread id; all but what changes with every checkpoint
	bThreadOf   = []byte("thread.of")   // thread id, tag, more: what belongs to a thread and is small, side by side
	bCheck      = []byte("checkpoint")  // thread id, checkpoint id -> depth, checkpoint
	bRun        = []byte("run")         // run id; what admission fixed
	bRunOf      = []byte("run.of")      // run id, tag, more: what belongs to a run, side by side
	bRunLive    = []byte("run.live")    // seq -> run id; all that are not terminal
	bOut        = []byte("out")         // key -> header (see outHeader), record
	bOutUnsent  = []byte("out.unsent")  // time, key
	bOutDone    = []byte("out.done")    // time of the last update, key; for pruning
	bPenalty    = []byte("penalty")     // scope -> time
	bArtThread  = []byte("art.thread")  // thread id, artifact id
	bUsage      = []byte("usage")       // time, row id
	bUser       = []byte("user")        // user id
	bConn       = []byte("connection")  // channel, workspace, account
	bConnUser   = []byte("connection.user")
	bSchedule   = []byte("schedule")     // schedule id
	bSchedDue   = []byte("schedule.due") // next, schedule id; active ones only
	bChat       = []byte("chat")         // chat -> summary
	bChatMsg    = []byte("chat.msg")     // chat, seq -> message
	bChatID     = []byte("chat.id")      // chat, message id -> seq
	bLife       = []byte("life")         // time of a start that was not followed by a stop
)

var buckets = [][]byte{
	bMeta, bInbox, bInboxQueue, bDedupe, bDedupeTime, bConv, bConvMsg, bThread, bThreadOf, bCheck, bRun, bRunOf, bRunLive,
	bOut, bOutUnsent, bOutDone, bPenalty, bArtThread, bUsage, bUser, bConn, bConnUser,
	bSchedule, bSchedDue, bChat, bChatMsg, bChatID, bLife,
}

// appended are buckets whose keys only rise, so that their pages need no room for keys in between.
var appended = map[string]bool{
	string(bInbox): true, string(bDedupeTime): true, string(bRun): true, string(bRunOf): true, string(bRunLive): true,
	string(bOutUnsent): true, string(bOutDone): true, string(bUsage): true,
}

// Tags in bThreadOf.
const (
	tagActive  = "a" // -> run id; the one active run
	tagHead    = "h" // -> depth, time of the last change, checkpoint id; every thread has it
	tagKey     = "k" // idempotency key -> run id
	tagPending = "p" // seq -> run id
	tagRun     = "r" // seq -> run id
)

// ofThread is a key in bThreadOf.
func ofThread(thread, tag string, more ...byte) []byte {
	return append(append(key(thread), tag...), more...)
}

// Tags in bRunOf.
const (
	tagArtifact = "a" // artifact id -> thread id
	tagJournal  = "j" // seq of the first -> list of events
	tagOut      = "o" // time, key of an outgoing record
	tagState    = "s" // -> what changes in a run
	tagUsage    = "u" // time, row id
)

// ofRun is a key in bRunOf.
func ofRun(run, tag string, more ...byte) []byte {
	return append(append(key(run), tag...), more...)
}

// kSchema is the name of the layout's version in bMeta. The bucket's sequence gives all orders of arrival.
var kSchema = []byte("schema")
