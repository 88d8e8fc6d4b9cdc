// Package cli has the commands of perdure that ask a server over its HTTP API; each file has the
// commands of one noun. docs/reference/cli.md is the manual.
package cli
