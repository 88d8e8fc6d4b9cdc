package mcptool_test

import (
	"os/signal"
	"syscall"
)

// ignoreSignals ignores SIGTERM.
func ignoreSignals() { signal.Ignore(syscall.SIGTERM) }
