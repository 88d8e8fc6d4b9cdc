//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// detach gives a program a group of its own: signals meant for us, such as those of a terminal, do
// not reach it, and ours reach what it has started too.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a program to end that has not been waited for, so that its number is still its own.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
