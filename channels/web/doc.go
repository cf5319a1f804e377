// Package web is the channel whose platform is this very process: a chat page in the browser.
//
// Every message, the person's and the bot's, is kept in a [Log] before anybody hears of it, so that the page is only a
// view: it may reload, fall asleep or lose its connection at any moment and catches up from the last revision it saw.
//
// # HTTP
//
// [Channel.ServeHTTP] serves the page at / and everything else below /chat/:
//
//	GET    /                                         the page
//	GET    /chat/static/{hash}/{file}                its script and style, cached for a year
//	GET    /chat/api/conversations                   {"conversations": [{id, title, messages, updated_at}]}, newest first
//	POST   /chat/api/conversations                   {"title": ""} -> 201 {id, title}
//	PATCH  /chat/api/conversations/{id}              {"title": "…"} -> {id, title}
//	DELETE /chat/api/conversations/{id}              204; work of the bot under way there is told to stop
//	GET    /chat/api/conversations/{id}/messages     ?after=seq | ?before=seq, ?limit= -> {messages, rev, more}
//	POST   /chat/api/conversations/{id}/messages     202 {message}: committed; 200: was committed before; 503: try again
//	POST   /chat/api/conversations/{id}/actions      {"message_id", "action", "client_id"} -> 202: a button was pressed
//	GET    /chat/api/conversations/{id}/events       server-sent events, resumed by Last-Event-ID or ?after=rev
//	GET    /chat/api/commands                        {"commands": [{name, description, args}]}
//	GET    /chat/files/{id}/{name}                   a file; pictures of safe kinds inline, all else as a download
//
// A message is posted as JSON {"client_id", "text"} or as multipart/form-data with the fields client_id and text followed
// by the files in parts named "file". client_id names the message for ever: posting it again changes nothing. A
// conversation id is a UUID; the first message creates the conversation.
//
// Errors are {"error": {"code", "message"}}.
//
// The event stream has the events "message" (a message as it is now; id is its revision), and, without an id, "typing",
// "chat" ({id, title}), "notice" ({text, action_id}), "gone" (the conversation was deleted) and "reset" (too much was
// missed: load the messages again).
//
// # Who may
//
// The handler knows no passwords. It must stand behind the console's guard, which admits only the loopback address or
// holders of the token, and refuses writes of other origins. Everybody admitted is the same person, [SenderID].
package web
