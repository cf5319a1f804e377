// Package slack connects deerbot to a Slack workspace over Socket Mode: it dials out and needs no public address.
//
// One goroutine reads the socket and does nothing else; what it reads goes through a bounded queue to one that hands
// events to the inbox in order and acknowledges each to Slack after Accept returned nil. When the queue is full an
// event is left unacknowledged, so that Slack sends it again. Reconnecting is bounded by our own back-off, which also
// covers connections that are accepted and dropped at once; after a gap the history of the conversations of the last
// hour is read, and the inbox drops what it has.
//
// Ids: a message's id is its ts, an edit's event id adds the ts of the edit, so that app_mention and message events of
// one message, retries and history are the same event. A topic is a thread's ts; a mention outside threads opens the
// thread on itself. Direct messages are one conversation and each of their threads another.
//
// Calls are made by this package and not by the SDK, because a call whose answer was lost must be told apart from one that
// never left, and because the SDK refuses a whole event for one block it does not know.
package slack
