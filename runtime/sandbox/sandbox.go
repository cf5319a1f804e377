// Package sandbox is where tools act: the path contract and the file tree of a thread.
package sandbox
