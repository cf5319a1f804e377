package daemon

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropStartPages lets go of the program file's pages that starting has touched. Most of them, the initialisers of large
// libraries, are never used again; what is used comes back from the page cache by itself. It saves some 15 MB for a
// daemon that mostly waits. Failing is harmless.
func dropStartPages() {
	exe, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	const dontNeed = 4 // MADV_DONTNEED; on a clean private file mapping nothing can be lost
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		if !strings.HasSuffix(line, exe) {
			continue
		}
		var from, to uintptr
		var perms string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); err != nil || strings.Contains(perms, "w") {
			continue // written pages are data
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, dontNeed)
	}
}
