//go:build !crashtest

package crash

// Enabled reports whether the binary was built for crash tests.
const Enabled = false

// Point does nothing in this build.
func Point(string) {}
