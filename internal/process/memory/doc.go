// Package memory hides the memory of a process from other processes of the same user, such as the
// programs of MCP servers. Secrets are in the environment and in the memory of the process. It also
// reduces that memory after the start.
package memory
