// Package e2e runs the real binary against the wire servers: a person writes in a chat, and what a person sees is checked.
//
// The binary is built once with the tag crashtest, so that it can be killed at the points of internal/crash. Nothing is
// mocked between the chat and the model.
package e2e
