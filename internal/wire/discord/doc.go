// Package discord is a server that behaves like Discord: the REST API v10, the gateway and the CDN, for one bot and the
// world around it, in one http.Handler.
//
// It is as strict as Discord, and stricter where that finds mistakes: unknown fields are refused, limits and error bodies
// are the real ones, a message without allowed_mentions pings whom its text names, and that is recorded. The control API
// plays the people; [Server.Fail] and the gateway's controls break things.
package discord
