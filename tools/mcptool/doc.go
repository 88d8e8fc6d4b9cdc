// Package mcptool offers the tools of MCP servers (Model Context Protocol) as a [tools.Source].
//
//	Start ──► connect ──► list ──► offers ──► Registry
//	   ▲         │                    ▲
//	   └─────────┘ lost, back-off     └── tools/list_changed
//
// A server has a URL (streamable HTTP), or is a program that this package starts (stdio transport).
//
// The rules:
//
//   - An unavailable server does not prevent the start of the worker. Until its tools are known,
//     Offers returns an error. Afterwards the last list remains valid, and a call without a
//     connection is a [tools.UnavailableError].
//   - The tool search of the server github is github_search for models, and mcp:github/search in
//     agents. A name that model providers would reject is changed deterministically.
//   - A call is made once. Its progress is an activity of kind mcp-progress. If its ctx ends, the
//     server is notified.
//   - The server may not request sampling or roots, and may elicit only if its definition permits
//     that.
//   - A program gets the environment of its definition and a few common variables, but none of the
//     worker's secrets. If a secret of its definition changes, the next call starts it again.
package mcptool
