// Package cli has the commands of perdure that use the HTTP API of a server, through package
// client. Each file has the commands of one noun. docs/reference/cli.md is generated from them; the
// texts in cobra.Command are its source.
//
// Output: results go to standard output, notices to standard error. With --json, a command prints
// one JSON document, or one line of JSON for each event. Text from models, tools and other people
// passes through onTerminal before it reaches a terminal.
package cli
