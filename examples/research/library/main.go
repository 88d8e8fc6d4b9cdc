// Command library is an MCP server over standard input and output. Its tools search and read the
// notes of package notes. Any MCP client can use it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/examples/research/notes"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

// run serves until standard input ends, which is how MCP clients stop a server over stdio.
func run(ctx context.Context) error {
	library, err := notes.Load()
	if err != nil {
		return err
	}
	return newServer(library).Run(ctx, &mcp.StdioTransport{})
}

// newServer returns the server with its two tools.
func newServer(library notes.Library) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1.0.0"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true} // Perdure may repeat calls of read-only tools
	mcp.AddTool(s, &mcp.Tool{Name: "search", Description: "Searches the library.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in notes.Query) (*mcp.CallToolResult, notes.Found, error) {
			return nil, library.Search(in.Query), nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "read", Description: "Reads a note of the library.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in notes.Key) (*mcp.CallToolResult, notes.Note, error) {
			note, err := library.Read(in.ID)
			return nil, note, err
		})
	return s
}
