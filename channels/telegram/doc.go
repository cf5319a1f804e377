// Package telegram connects deerbot to Telegram by the Bot API.
//
// # Receiving
//
// [Channel.Run] polls getUpdates by itself, one request at a time, because the SDK's poller confirms updates before they
// were handled. The offset that confirms an update is sent only when Inbox.Accept returned nil for it and for every
// update before it; a refused one is offered again until ctx ends. So nothing is lost by a crash, and what comes twice has
// the same EventID. Nothing that waited while deerbot was down is dropped.
//
// # Sending
//
// Types are those of github.com/go-telegram/bot; the calls are our own: the SDK sends every call as chunked multipart,
// hides the HTTP status, and cannot tell whether a request that failed may have reached the server. Here calls are JSON,
// only files are multipart, and [channels.Transient] says MaybeSent from what the transport saw. Errors are classified
// once, in classify.go. The token is part of every URL, so no error of net/http leaves call.go as it is.
package telegram
