//go:build !unix

package mcptool

import "os/exec"

func detach(*exec.Cmd) {}

// terminate does what kill does where nothing can be asked.
func terminate(cmd *exec.Cmd) { kill(cmd) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
