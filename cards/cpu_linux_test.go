package cards

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of the process: what the load of a shared machine does not change.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
