// Package mcptool offers the tools of MCP servers (Model Context Protocol).
//
//	Start ──► connect ──► list ──► offers ──► Registry
//	   ▲         │                    ▲
//	   └─────────┘ lost, back-off     └── tools/list_changed
//
// A server is reached by streamable HTTP, or is a program that this package starts and speaks with
// on its standard input and output.
//
// The rules:
//
//   - A server that is away keeps nothing from starting. Until its tools are known, asking for them
//     is an error; from then on the last list stands, and a call while the server is away is an
//     [tools.UnavailableError].
//   - The tool search of the server github is github_search for models and mcp:github/search in
//     agents. A name that models could not be offered so is changed, always in the same way.
//   - A call is made once. Its progress is an activity of kind mcp-progress; its end, if it is cut
//     short, is told to the server.
//   - The server may ask nothing of us: no sampling, no elicitation, no roots.
//   - A program gets only the environment that its file gives it, besides the usual: no secret of the worker's.
package mcptool
