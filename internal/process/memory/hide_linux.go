package memory

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// Hide makes the environment, the memory and the open files of this process unreadable to other
// processes of its user, until it ends: in /proc, with ptrace, and in a core dump. Processes with
// CAP_SYS_PTRACE, such as those of root, can still read them. Programs that this process starts are
// not hidden. It does nothing in a process that a debugger has started, which could not read the
// memory otherwise.
//
// A program calls Hide first, because /proc shows its environment from its start.
func Hide() error {
	if isTraced() {
		return nil
	}
	// The attribute belongs to the memory, so one call applies to all threads. The kernel sets it
	// again in execve (PR_SET_DUMPABLE(2const)): each program of Perdure calls Hide for itself.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("hide the memory from other processes: prctl PR_SET_DUMPABLE: %w", errno)
	}
	return nil
}

// isTraced reports whether a debugger controls this process.
func isTraced() bool {
	status, err := os.ReadFile("/proc/self/status")
	_, rest, ok := bytes.Cut(status, []byte("\nTracerPid:\t"))
	return err == nil && ok && !bytes.HasPrefix(rest, []byte("0\n"))
}
