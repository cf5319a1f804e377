// Package telegram is a Telegram Bot API server for tests, demonstrations and benchmarks: an [http.Handler] that is as
// strict as the real one where a bot can notice it, and a Go control API that plays the people on the other side.
//
// Bots reach it under {base}/bot{token}/{method} and {base}/file/bot{token}/{path}, by GET or POST with JSON, a form or
// multipart. Texts of refusals are those of github.com/tdlib/telegram-bot-api and td, because adapters classify by them.
//
// A test builds a [Server] with [New], makes users and chats, lets them [Chat.Say] things and looks at
// [Chat.Messages], what a person would see now, and at [Server.Calls], every call with its time and outcome. Waiting is
// [Chat.Await], [Chat.WaitFor] and [Server.WaitFor]; nothing here sleeps. [Server.Fail], [Server.Cut] and
// [Server.SetDown] break things. The same is reachable by hand under /control/ (control.go).
//
// One mutex guards the whole world; nothing slow is done under it, texts are parsed before it is taken.
package telegram
