// Package discord connects deerbot to Discord by the gateway and the REST API, both in version 10.
//
// # Receiving
//
// Types are those of github.com/bwmarrin/discordgo; the gateway connection is our own, on gorilla/websocket. The SDK's
// session cannot be made safe from outside: it deadlocks for good when op 7 comes while it opens (#513), loses the
// session on every reconnect, and moves its sequence number when an event is read. Here the number that RESUME sends is
// that of the last event for which Inbox.Accept returned nil, so what was read but not stored is sent again by Discord,
// in order, also to the next process when [Config.Memory] is set. When the session is lost, messages after the last seen
// one are fetched of every channel and thread seen lately. What comes twice has the same EventID.
//
// One goroutine reads and answers the protocol, one takes the events in order and hands them to the inbox; the queue
// between them is bounded and stops the reader when it is full, while heartbeats go on. A connection without a heartbeat
// acknowledgement is dropped. Close codes that cannot heal end Run with *channels.Fatal.
//
// # Sending
//
// Calls are our own for the same reasons as in package telegram: one attempt, no wait inside, MaybeSent from what the
// transport saw. A create carries a nonce made of the message's key with enforce_nonce: Discord answers a repeated one
// with the first message, for some minutes. Every create and edit carries empty allowed_mentions. Errors are classified
// once, in classify.go.
package discord
