// Package cli is the commands of perdure that ask a running node over its HTTP API: one noun, one file.
// docs/reference/cli.md is their manual.
package cli
