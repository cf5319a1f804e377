// Package console is deerbot's HTTP server: health and metrics for machines, and everything that people see in a browser,
// behind one guard.
//
//	GET  /healthz   200 while the process serves; no token needed
//	GET  /readyz    200 or 503 with what is missing, as JSON; no token needed
//	GET  /metrics   Prometheus, when a registry is given; needs the token when there is one
//	GET  /login     asks for the token; POST checks it and sets a session cookie
//	POST /logout    ends the session
//	/api/           Config.API
//	/, /chat/       Config.Chat
//
// # The guard
//
// Without a token the server listens on the loopback address only, and answers only to names of this machine, so that no
// web site can reach it by pointing its own name here (DNS rebinding). With a token every request needs it, as
// "Authorization: Bearer …" or through the cookie that the login page gives for it. The cookie is not the token but a
// signed expiry; it ends with the token. Writes that a browser sends from another origin are refused either way.
package console
