package mcptool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// roleVariable is the environment variable that makes the test binary a server on its standard
// input and output.
const roleVariable = "MCPTOOL_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "stubborn": // does not exit when its input is closed, and ignores the interrupt
		ignoreSignals()
		serveStdio()
		select {}
	case "rotated":
		if os.Getenv("TOKEN") == refusedToken {
			os.Exit(3)
		}
		serveStdio()
	case "broken":
		fmt.Fprintln(os.Stderr, "no license:", os.Getenv("TOKEN"))
		os.Exit(3)
	default:
		serveStdio()
	}
}

// The token with which the role rotated does not start, and the environment variable with the
// address of the gate that ends its tool gated.
const (
	refusedToken = "bad"
	gateVariable = "GATE"
)

// serveStdio serves the playground over standard input and output.
func serveStdio() {
	fmt.Fprintln(os.Stderr, "serving with", os.Getenv("TOKEN"))
	_ = newPlayground().server.Run(context.Background(), &mcp.StdioTransport{})
}

// playground is a server built with the SDK, with one tool for each case.
type playground struct {
	server  *mcp.Server
	begun   chan struct{} // a call of wait has started
	stopped chan struct{} // a call of wait was cancelled
	over    chan struct{} // the test has ended
	ended   sync.Once
}

type handler = func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)

// newPlayground returns an MCP server with tools for the tests.
func newPlayground() *playground {
	p := &playground{server: mcp.NewServer(&mcp.Implementation{Name: "playground", Version: "1"}, nil), begun: make(chan struct{}, 8), stopped: make(chan struct{}, 8), over: make(chan struct{})}
	p.add("echo", &mcp.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	})
	p.add("key", nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(fmt.Sprint(req.Params.Meta["io.github.perdure/idempotencyKey"])), nil
	})
	p.add("assertion", nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token, _ := req.Params.Meta["io.github.perdure/assertion"].(string)
		if os.Getenv(roleVariable) != "" {
			fmt.Fprintln(os.Stderr, "received", token)
		}
		_, claims, _ := strings.Cut(token, ".")
		claims, _, _ = strings.Cut(claims, ".")
		decoded, err := base64.RawURLEncoding.DecodeString(claims)
		return text(string(decoded) + "\n" + token), err
	})
	p.add("trace", nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta := fmt.Sprint(req.Params.Meta["traceparent"], " ", req.Params.Meta["tracestate"], " ", req.Params.Meta["baggage"])
		if req.Extra == nil || req.Extra.Header == nil {
			return text(meta), nil
		}
		h := req.Extra.Header
		return text(meta + ", " + h.Get("Traceparent") + " " + h.Get("Tracestate") + " " + h.Get("Baggage")), nil
	})
	p.add("fail", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such order"}}}, nil
	})
	p.add("structured", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"sum": 3, "what": "a<b"}, Content: []mcp.Content{}}, nil
	})
	p.add("media", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"x": 1}, Content: []mcp.Content{
			&mcp.TextContent{Text: "one"}, &mcp.TextContent{Text: "two"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("picture")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("sound")},
			&mcp.TextContent{Text: "three"},
			&mcp.ResourceLink{Name: "r", URI: "file:///r", MIMEType: "text/plain", Description: "a file"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///t", Text: "inside"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///p", MIMEType: "application/pdf", Blob: []byte("pdf")}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///z", MIMEType: "application/zip", Blob: []byte("zip")}},
		}}, nil
	})
	p.add("progress", nil, p.progress)
	p.add("wait", &mcp.ToolAnnotations{IdempotentHint: true}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p.begun <- struct{}{}
		select {
		case <-ctx.Done():
		case <-p.over: // the SDK does not report a caller that disconnected silently
			return text("too late"), nil
		}
		p.stopped <- struct{}{}
		return nil, ctx.Err()
	})
	p.add("crash", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprint(os.Stderr, "crashing")
		os.Exit(3)
		return nil, nil //nolint:nilnil // never
	})
	p.add("environment", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	p.add("gated", nil, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		gate, err := (&net.Dialer{}).DialContext(ctx, "tcp", os.Getenv(gateVariable))
		if err != nil {
			return nil, err
		}
		_, err = io.ReadAll(gate)
		return text("called with " + os.Getenv("TOKEN")), err
	})
	p.add("sample", nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, sampled := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1}) //nolint:staticcheck // old servers do
		_, elicited := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "password?", RequestedSchema: map[string]any{"type": "object"}})
		if sampled == nil || elicited == nil {
			return text("the client gave in"), nil
		}
		return text("refused"), nil
	})
	p.add("huge", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", 21<<20)), nil
	})
	p.add("long", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", 5<<20)), nil
	})
	p.add("grow", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p.add("grown", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("I am new"), nil })
		return text("done"), nil
	})
	p.add("repos.get/one", nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("odd name"), nil })
	return p
}

// serve serves the playground over HTTP.
func (p *playground) serve(t *testing.T, options *mcp.StreamableHTTPOptions) http.Handler {
	t.Helper()
	t.Cleanup(func() {
		p.end()
		for session := range p.server.Sessions() { // sessions that no client has closed
			_ = session.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return p.server }, options)
}

// end releases calls that wait for a disconnected caller.
func (p *playground) end() { p.ended.Do(func() { close(p.over) }) }

// add adds a tool.
func (p *playground) add(name string, hints *mcp.ToolAnnotations, h handler) {
	p.server.AddTool(&mcp.Tool{Name: name, Description: "does " + name, Annotations: hints, InputSchema: json.RawMessage(
		`{"type":"object","properties":{"a":{"type":"string"}}}`)}, h)
}

// progress reports progress many times.
func (p *playground) progress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, errors.New("no progress token")
	}
	for i := range 2000 {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 2000, Message: "with " + os.Getenv("TOKEN")})
		if err != nil {
			return nil, err
		}
	}
	return text("done"), nil
}

// text returns a result with text.
func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
