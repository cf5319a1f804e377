//go:build !linux

package cards

import "time"

var epoch = time.Now()

func cpuTime() time.Duration { return time.Since(epoch) }
