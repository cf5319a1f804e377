// Package slack plays Slack for tests: the Web API, Socket Mode and the people of one workspace, in this process.
//
// [Server] is an http.Handler. The adapter under test talks to it over HTTP and WebSocket as to the real one, with the
// real limits and error codes; a test plays the people through the Go API (Say, Edit, Press …), breaks things (Fail, Cut,
// Freeze, SetDown) and looks at what people see (Messages). It is stricter than Slack where Slack forgives.
//
// Facts are from docs.slack.dev; what is not documented follows the types of github.com/slack-go/slack.
package slack
