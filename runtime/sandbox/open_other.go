//go:build !unix

package sandbox

const nonblock = 0
