package boltstore

// Buckets and what their keys are. conv stands for the four parts of a conversation key.
var (
	bMeta       = []byte("meta")        // name
	bInbox      = []byte("inbox")       // entry id
	bInboxQueue = []byte("inbox.queue") // conv, seq -> entry id; pending entries only
	bInboxMsg   = []byte("inbox.msg")   // conv, message id -> entry id
	bDedupe     = []byte("dedupe")      // channel, workspace, chat, dedupe key -> time
	bDedupeTime = []byte("dedupe.time") // time, the key above
	bConv       = []byte("conv")        // conv
	bConvMsg    = []byte("conv.msg")    // channel, workspace, chat, message id -> conversation key
	bThread     = []byte("thread")      // thread id
	bCheck      = []byte("checkpoint")  // thread id, checkpoint id
	bRun        = []byte("run")         // run id
	bRunKey     = []byte("run.key")     // thread id, idempotency key -> run id
	bRunActive  = []byte("run.active")  // thread id -> run id; the one active run of a thread
	bRunPending = []byte("run.pending") // thread id, seq -> run id
	bRunLive    = []byte("run.live")    // seq -> run id; all that are not terminal
	bRunThread  = []byte("run.thread")  // thread id, seq -> run id
	bJournal    = []byte("journal")     // run id, seq
	bOut        = []byte("out")         // key
	bOutUnsent  = []byte("out.unsent")  // time, key
	bOutRun     = []byte("out.run")     // run id, time, key
	bOutDone    = []byte("out.done")    // time of the last update, key; for pruning
	bPenalty    = []byte("penalty")     // scope -> time
	bArtThread  = []byte("art.thread")  // thread id, artifact id
	bArtRun     = []byte("art.run")     // run id, artifact id -> thread id
	bUsage      = []byte("usage")       // time, row id
	bUsageRun   = []byte("usage.run")   // run id, time, row id -> key in usage
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
	bMeta, bInbox, bInboxQueue, bInboxMsg, bDedupe, bDedupeTime, bConv, bConvMsg, bThread, bCheck, bRun, bRunKey, bRunActive,
	bRunPending, bRunLive, bRunThread, bJournal, bOut, bOutUnsent, bOutRun, bOutDone, bPenalty, bArtThread, bArtRun, bUsage,
	bUsageRun, bUser, bConn, bConnUser, bSchedule, bSchedDue, bChat, bChatMsg, bChatID, bLife,
}

// Names in bMeta.
var (
	kSchema = []byte("schema")
	kSeq    = []byte("seq") // one rising number for all orders of arrival
)
