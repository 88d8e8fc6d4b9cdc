//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// detach puts a program into its own process group. Signals to the worker's group, such as Ctrl-C
// in a terminal, do not reach it, and signals to its group also reach its children.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate sends SIGTERM to the group of a program. Wait has not returned, so the process ID is
// still valid.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill sends SIGKILL to the group of a program.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
