//go:build !unix

package mcptool

import "os/exec"

// detach does nothing: process groups exist only on Unix.
func detach(*exec.Cmd) {}

// terminate kills the program, because it has no portable signal to exit.
func terminate(cmd *exec.Cmd) { kill(cmd) }

// kill kills the program, but not its children.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
