//go:build !linux

package daemon

// dropStartPages does nothing here.
func dropStartPages() {}
