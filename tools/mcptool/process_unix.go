//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// detach gives a program its own process group: signals to the worker, such as those of a terminal,
// do not reach it, and signals to it also reach its children.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a program to end. It has not been waited for, so its process ID is still valid.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
