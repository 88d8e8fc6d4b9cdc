//go:build !unix

package mcptool

import "os/exec"

func detach(*exec.Cmd) {}

// terminate kills the program: on this system it cannot be asked to end.
func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
