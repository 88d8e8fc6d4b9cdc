// Command library is an MCP server on standard input and output: a few notes, to be searched and read. Any
// MCP client can use it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

// run serves until standard input ends.
func run(ctx context.Context) error {
	notes, err := loadNotes(files)
	if err != nil {
		return err
	}
	return newServer(notes).Run(ctx, &mcp.StdioTransport{})
}

type searchInput struct {
	Query string `json:"query" jsonschema:"words to look for"`
}

type searchOutput struct {
	Notes []hit `json:"notes" jsonschema:"at most three, the best first"`
}

type readInput struct {
	ID string `json:"id" jsonschema:"the id of a note, from a search"`
}

type readOutput struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func newServer(notes library) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1.0.0"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true} // so that a call may be made again
	mcp.AddTool(s, &mcp.Tool{Name: "search", Description: "Searches the library.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, searchOutput, error) {
			return nil, searchOutput{Notes: notes.search(in.Query)}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "read", Description: "Reads a note of the library.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, readOutput, error) {
			n, ok := notes[in.ID]
			if !ok {
				return nil, readOutput{}, fmt.Errorf("there is no note %.80q; search for one", in.ID)
			}
			return nil, readOutput{ID: in.ID, Title: n.title, Text: n.text}, nil
		})
	return s
}
