package mcptool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/mcptool"
)

const token = "s3cr3t-token"

// patience bounds the wait for events that should happen at once.
const patience = 30 * time.Second

// witness collects log lines and signals each line.
type witness struct {
	slog.Handler

	mu    sync.Mutex
	lines strings.Builder
	heard chan struct{} // closed and replaced with each line
}

// newWitness returns an empty log.
func newWitness() *witness {
	w := &witness{heard: make(chan struct{})}
	w.Handler = slog.NewTextHandler(w, nil)
	return w
}

func (w *witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.heard)
	w.heard = make(chan struct{})
	return w.lines.Write(p)
}

// text returns the log, and a channel that is closed at the next line.
func (w *witness) text() (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String(), w.heard
}

// await returns when the log has the given number of lines with a text.
func (w *witness) await(t *testing.T, text string, times int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		all, more := w.text()
		if strings.Count(all, text) >= times {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("log: want %q %d times, got\n%s", text, times, all)
		}
	}
}

// connection is an open connection to a server.
type connection struct {
	*mcptool.Server

	registry *tools.Registry
	log      *witness
}

// connect connects to an MCP server, and returns its tools.
func connect(t *testing.T, cfg mcptool.Config) *connection {
	t.Helper()
	return connectSigning(t, cfg, nil)
}

// connectSigning is connect with a function that signs assertions; nil = calls have none.
func connectSigning(t *testing.T, cfg mcptool.Config, sign func(assertion.Subject) (string, error)) *connection {
	t.Helper()
	c := &connection{log: newWitness()}
	cfg.Name = "play"
	var err error
	c.Server, err = mcptool.Start(cfg, mcptool.Environment{
		AllowPrivate: true, Logger: slog.New(c.log), Sign: sign,
		Secret: func(name string) string { return map[string]string{"TOKEN": token}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	empty, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if c.registry, err = empty.With(c.Server); err != nil {
		t.Fatal(err)
	}
	return c
}

// stdio runs this test binary as a server.
func stdio(role string) mcptool.Config {
	return mcptool.Config{Command: []string{os.Args[0]}, Env: map[string]string{roleVariable: role, "TOKEN": "${secret:TOKEN}"}}
}

// find returns a tool by its name on the server.
func (c *connection) find(t *testing.T, own string) tools.Tool {
	t.Helper()
	found, err := c.registry.Select([]string{"mcp:play/" + own})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: got %v, %v, want one tool", own, found, err)
	}
	return found[0]
}

// call calls a tool by its name at the server.
func (c *connection) call(t *testing.T, own, arguments string) tools.Result {
	t.Helper()
	result, err := c.find(t, own).Call(t.Context(), tools.Call{ID: "c1", IdempotencyKey: "r1/c1", Arguments: json.RawMessage(arguments), Run: acmeRun})
	if err != nil {
		t.Fatalf("%s: %v", own, err)
	}
	return result
}

const connected = "MCP server is connected"

// web serves playgrounds over HTTP and checks the requests.
func web(t *testing.T, options *mcp.StreamableHTTPOptions) (*playground, *httptest.Server) {
	t.Helper()
	p := newPlayground()
	inner := p.serve(t, options)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "not authenticated", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.end()
		server.Close()
	})
	return p, server
}

// old serves a playground over the protocol with sessions, which most servers use.
func old(t *testing.T) (*playground, *httptest.Server) {
	t.Helper()
	p := newPlayground()
	server := httptest.NewServer(withSessions(t, p.serve(t, nil)))
	t.Cleanup(func() {
		p.end()
		server.Close()
	})
	return p, server
}

// withSessions hides from a server that the client supports the protocol without sessions.
func withSessions(t *testing.T, inner http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(body), `"server/discover"`) {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		if !strings.Contains(string(body), `"initialize"`) && r.Header.Get("Mcp-Session-Id") == "" {
			t.Errorf("request without a session: %.200s, want one", body)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(w, r)
	})
}

// url returns the configuration of a server over HTTP.
func url(u string) mcptool.Config {
	return mcptool.Config{URL: u, Headers: map[string]string{"Authorization": "Bearer ${secret:TOKEN}"}}
}

// TestTools: tools behave identically over every transport.
func TestTools(t *testing.T) {
	t.Parallel()
	_, stateful := web(t, nil)
	_, stateless := web(t, &mcp.StreamableHTTPOptions{Stateless: true})
	_, plain := web(t, &mcp.StreamableHTTPOptions{JSONResponse: true})
	_, before := old(t)
	for name, cfg := range map[string]mcptool.Config{
		"program": stdio("server"), "stateful": url(stateful.URL), "stateless": url(stateless.URL), "JSON": url(plain.URL),
		"with sessions": url(before.URL),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, cfg)
			c.log.await(t, connected, 1)
			t.Run("results", func(t *testing.T) { testResults(t, c) })
			t.Run("spec", func(t *testing.T) { testSpecs(t, c) })
			t.Run("refusals", func(t *testing.T) { testRefusals(t, c) })
			if all, _ := c.log.text(); strings.Contains(all, token) {
				t.Errorf("log has the secret, want it redacted:\n%s", all)
			}
		})
	}
}

// TestTraceContext: each call carries the trace context in its _meta, and over HTTP in headers too.
// No call carries baggage.
func TestTraceContext(t *testing.T) { //nolint:paralleltest // sets the process's propagator
	before := otel.GetTextMapPropagator()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	otel.SetTextMapPropagator(both)
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := both.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent, "tracestate": "vendor=1", "baggage": "user=eve"})
	const meta = parent + " vendor=1 <nil>"
	_, stateful := web(t, nil)
	_, sessions := old(t)
	for name, tt := range map[string]struct {
		cfg  mcptool.Config
		want string
	}{
		"program": {stdio("server"), meta}, "stateful": {url(stateful.URL), meta + ", " + parent + " vendor=1 "},
		"with sessions": {url(sessions.URL), meta + ", " + parent + " vendor=1 "},
	} {
		c := connect(t, tt.cfg)
		c.log.await(t, connected, 1)
		result, err := c.find(t, "trace").Call(ctx, tools.Call{ID: "c1"})
		if err != nil || result.Content != tt.want {
			t.Errorf("%s: %q (%v), want %q", name, result.Content, err, tt.want)
		}
		result = c.call(t, "trace", "{}")
		if strings.Contains(result.Content, parent) {
			t.Errorf("%s: call without a trace: got %q, want no trace", name, result.Content)
		}
	}
}

// testResults checks the results of calls.
func testResults(t *testing.T, c *connection) {
	data := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		tool, arguments string
		want            tools.Result
	}{
		{"echo", `{"a":"s3cr3t-token é <b>"}`, tools.Result{Content: `{"a":"[secret] é <b>"}`}},
		{"key", `{}`, tools.Result{Content: "r1/c1"}},
		{"fail", `{}`, tools.Result{Content: "no such order", IsError: true}},
		{"structured", `{}`, tools.Result{Content: `{"sum":3,"what":"a<b"}`}},
		{"repos.get/one", `{}`, tools.Result{Content: "odd name"}},
		{"media", `{}`, tools.Result{Content: "one\ntwo", Parts: []llm.Part{
			llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: data("picture")},
			llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: data("sound")},
			llm.Text{Text: "three"},
			llm.Text{Text: "[resource r (text/plain): file:///r] a file"},
			llm.Text{Text: "[resource file:///t]\ninside"},
			llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Name: "file:///p", Data: data("pdf")},
			llm.Text{Text: `[resource file:///z: 3 bytes of "application/zip", which is not supported]`},
		}}},
	} {
		got := c.call(t, tt.tool, tt.arguments)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.tool, diff)
		}
	}
	if got := c.call(t, "long", `{}`); len(got.Content) != tools.DefaultMaxResult || !strings.HasSuffix(got.Content, "bytes]") {
		t.Errorf("size of a long result = %d bytes, want %d", len(got.Content), tools.DefaultMaxResult)
	}
}

// testSpecs checks the specifications of tools.
func testSpecs(t *testing.T, c *connection) {
	echo, key, odd := c.find(t, "echo").Spec(), c.find(t, "key").Spec(), c.find(t, "repos.get/one").Spec()
	if echo.Name != "play_echo" || echo.Description != "does echo" || !echo.Idempotent || echo.Attempts != tools.DefaultAttempts {
		t.Errorf("specification of echo = %+v, want an idempotent tool", echo)
	}
	if key.Idempotent || key.Attempts != 1 || odd.Name != "play_repos_get_one_0318cffc" {
		t.Errorf("specifications of key and of the long name = %+v and %+v, want one attempt and a short name", key, odd)
	}
	if want := `{"properties":{"a":{"type":"string"}},"type":"object"}`; string(echo.Parameters) != want {
		t.Errorf("parameters of echo = %s, want %s", echo.Parameters, want)
	}
}

// testRefusals checks what the client refuses.
func testRefusals(t *testing.T, c *connection) {
	if got := c.call(t, "echo", `{"a":1}`); !got.IsError || !strings.Contains(got.Content, "/a: expected string") {
		t.Errorf("invalid arguments: got %+v, want a failure at /a", got)
	}
	if got := c.call(t, "sample", `{}`); strings.Contains(got.Content, "gave in") {
		t.Errorf("sampling: got %+v, want a refusal", got)
	}
	if _, err := c.registry.Select([]string{"mcp:play/nope"}); err == nil {
		t.Error("tool that the server does not have: got no error, want one")
	}
}

// reports collects the activities of a call.
type reports struct {
	tools.Reporter

	mu       sync.Mutex
	contents []string
}

func (r *reports) Activity(name, kind string, content any) error {
	raw, err := json.Marshal(content)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contents = append(r.contents, name+" "+kind+" "+string(raw))
	return err
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	_, server := web(t, nil)
	for name, cfg := range map[string]mcptool.Config{"program": stdio("server"), "web": url(server.URL)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, cfg)
			c.log.await(t, connected, 1)
			r := &reports{}
			result, err := c.find(t, "progress").Call(t.Context(), tools.Call{ID: "c1", Arguments: json.RawMessage(`{}`), Reporter: r})
			if err != nil || result.Content != "done" {
				t.Fatalf("call = %+v, %v, want done", result, err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.contents) == 0 || len(r.contents) > 1000 || !strings.HasPrefix(r.contents[0], `progress mcp-progress {"server":"play","tool":"progress","progress":`) {
				t.Errorf("got %d reports, %.200q, want 1 to 1000 of mcp-progress", len(r.contents), r.contents)
			}
			if all := strings.Join(r.contents, "\n"); strings.Contains(all, token) {
				t.Errorf("reports have the secret, want it redacted: %.300s", all)
			}
		})
	}
}

func TestCancelReachesServer(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*testing.T) (*playground, *httptest.Server){
		"now":    func(t *testing.T) (*playground, *httptest.Server) { t.Helper(); return web(t, nil) },
		"before": old,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, server := serve(t)
			testCancel(t, p, connect(t, url(server.URL)))
		})
	}
}

// testCancel checks that a cancel reaches the server.
func testCancel(t *testing.T, p *playground, c *connection) {
	t.Helper()
	c.log.await(t, connected, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-p.begun
		cancel()
	}()
	if _, err := c.find(t, "wait").Call(ctx, tools.Call{ID: "c1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	select {
	case <-p.stopped:
	case <-time.After(patience):
		t.Fatal("the server received no cancellation")
	}
}

func TestStopEndsCalls(t *testing.T) {
	t.Parallel()
	p, server := web(t, nil)
	c := connect(t, url(server.URL))
	c.log.await(t, connected, 1)
	go func() {
		<-p.begun
		c.Stop()
	}()
	if got := awayText(t, c.find(t, "wait")); got != "play_wait failed: the worker stopped" {
		t.Errorf("result for the model during the stop = %q, want that the worker stopped", got)
	}
	if got := awayText(t, c.find(t, "echo")); got != "play_echo failed: the server is not connected, and nothing was done" {
		t.Errorf("result for the model after the stop = %q, want that nothing was done", got)
	}
}

// TestStopDoesNotWaitForServer: Stop does not wait for a server that does not answer the end of
// the session.
func TestStopDoesNotWaitForServer(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	p := newPlayground()
	inner := withSessions(t, p.serve(t, nil))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			<-over
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(over)
		p.end()
		server.Close()
	})
	c := connect(t, url(server.URL))
	c.log.await(t, connected, 1)
	go func() {
		<-p.begun
		c.Stop()
	}()
	begun := time.Now()
	if got := awayText(t, c.find(t, "wait")); got != "play_wait failed: the worker stopped" {
		t.Errorf("result for the model = %q, want that the worker stopped", got)
	}
	c.Stop()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("call and Stop took %s, want at most 3s", took)
	}
}

func TestNewToolsAreFound(t *testing.T) {
	t.Parallel()
	_, server := web(t, nil)
	_, before := old(t)
	for name, cfg := range map[string]mcptool.Config{"program": stdio("server"), "web": url(server.URL), "with sessions": url(before.URL)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, cfg)
			c.log.await(t, connected, 1)
			c.call(t, "grow", `{}`)
			c.log.await(t, "MCP server has changed its tools", 1)
			if got := c.call(t, "grown", `{}`); got.Content != "I am new" {
				t.Errorf("result of the new tool = %+v, want %s", got, "I am new")
			}
		})
	}
}

// awayText returns the text that a model gets for a call without a known outcome.
func awayText(t *testing.T, tool tools.Tool) string {
	t.Helper()
	_, err := tool.Call(t.Context(), tools.Call{ID: "c1", Arguments: json.RawMessage(`{}`)})
	var away *tools.UnavailableError
	if !errors.As(err, &away) {
		t.Fatalf("error = %v, want an UnavailableError", err)
	}
	return away.Text
}

func TestProgramIsRestarted(t *testing.T) {
	t.Parallel()
	c := connect(t, stdio("server"))
	c.log.await(t, connected, 1)
	if got, want := awayText(t, c.find(t, "crash")), "play_crash failed: the program of the server ended before the answer; the call may have taken effect"; got != want {
		t.Errorf("result for the model = %q, want %q", got, want)
	}
	c.log.await(t, "MCP server is not connected", 1)
	if _, err := c.registry.Select([]string{"mcp:play/*"}); err != nil {
		t.Errorf("the tools are forgotten: %v", err)
	}
	c.log.await(t, connected, 2)
	if got := c.call(t, "echo", `{"a":"b"}`); got.Content != `{"a":"b"}` {
		t.Errorf("result after the restart = %+v, want the arguments", got)
	}
	c.log.await(t, "text=crashing", 1)
	c.log.await(t, `text="serving with [secret]"`, 2)
}

func TestLargeMessageEndsConnection(t *testing.T) {
	t.Parallel()
	_, server := web(t, &mcp.StreamableHTTPOptions{JSONResponse: true})
	for name, cfg := range map[string]mcptool.Config{"program": stdio("server"), "web": url(server.URL)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Timeout = 4 * patience // under the race detector the server takes long to write
			c := connect(t, cfg)
			c.log.await(t, connected, 1)
			awayText(t, c.find(t, "huge"))
			c.log.await(t, connected, 2)
			c.call(t, "echo", `{}`)
		})
	}
}

func TestProgramsDoNotReceiveSecretsOfWorker(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-ours")
	t.Setenv("PERDURE_SECRET_OTHER", "other-of-ours")
	c := connect(t, stdio("server"))
	c.log.await(t, connected, 1)
	got := c.call(t, "environment", `{}`).Content
	if strings.Contains(got, "of-ours") || !strings.Contains(got, "PATH=") || !strings.Contains(got, "TOKEN=[secret]") {
		t.Errorf("environment of the program:\n%s\nwant PATH and its own secret only", got)
	}
}

func TestProgramIsKilledAfterGracePeriod(t *testing.T) {
	t.Parallel()
	c := connect(t, stdio("stubborn"))
	c.log.await(t, connected, 1)
	stopped := make(chan struct{})
	go func() {
		c.Stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Fatal("the program still runs")
	}
}

func TestUnreachableServerAtStart(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url("http://"+address))
	c.log.await(t, "MCP server is not connected", 1)
	if _, err := c.registry.Select([]string{"mcp:play/*"}); err == nil || err.Error() != "mcp:play: the server was not reached yet, so its tools are unknown" {
		t.Errorf("tools of a server that is away: got %v, want that they are unknown", err)
	}
	p := newPlayground()
	if listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err != nil {
		t.Skip("another process took the port")
	}
	server := &http.Server{Handler: p.serve(t, nil), ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }()
	c.log.await(t, connected, 1)
	c.call(t, "echo", `{}`)

	// The server dies in the middle of a call, and comes back without its sessions.
	go func() {
		<-p.begun
		_ = server.Close()
	}()
	if got := awayText(t, c.find(t, "wait")); !strings.HasPrefix(got, "play_wait failed: the connection to "+address+" was lost before the answer") {
		t.Errorf("result for the model = %q, want that the connection was lost", got)
	}
	if listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err != nil {
		t.Skip("another process took the port")
	}
	again := &http.Server{Handler: newPlayground().serve(t, nil), ReadHeaderTimeout: patience}
	go func() { _ = again.Serve(listener) }()
	t.Cleanup(func() { _ = again.Close() })
	deadline := time.Now().Add(patience)
	for {
		result, err := c.find(t, "echo").Call(t.Context(), tools.Call{ID: "c2", Arguments: json.RawMessage(`{}`)})
		if err == nil && result.Content == "{}" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("tools after a minute: got %+v, %v, want the server's", result, err)
		}
	}
}

// TestLostSessionIsRenewed: a server that restarts has no sessions. It rejects the call before
// it has any effect, so the call is repeated.
func TestLostSessionIsRenewed(t *testing.T) {
	t.Parallel()
	var inner atomic.Pointer[http.Handler]
	start := func() {
		h := withSessions(t, newPlayground().serve(t, nil))
		inner.Store(&h)
	}
	start()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*inner.Load()).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	c := connect(t, url(server.URL))
	c.log.await(t, connected, 1)
	start()
	if got, want := awayText(t, c.find(t, "key")), "play_key failed: the server has lost the session, and nothing was done"; got != want {
		t.Errorf("result for the model = %q, want %q", got, want)
	}
	c.log.await(t, connected, 2)
	c.call(t, "echo", `{}`)
}

// TestHTMLAnswersAreErrors: a proxy may answer in place of a server, for example with a sign-in
// page.
func TestHTMLAnswersAreErrors(t *testing.T) {
	t.Parallel()
	var page atomic.Bool
	inner := newPlayground().serve(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page.Load() {
			_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title>")
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := connect(t, url(server.URL))
	c.log.await(t, connected, 1)
	page.Store(true)
	want := `play_key failed: the server answered with the content type "text/html", which MCP does not have; the call may have taken effect`
	for range 3 {
		if got := awayText(t, c.find(t, "key")); got != want {
			t.Errorf("result for the model = %q, want %q", got, want)
		}
	}
	page.Store(false)
	c.call(t, "echo", `{}`)
}

func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		}, "HTTP 401 Unauthorized"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}, "which is not allowed"},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }, "text/plain"},
		"echo": {func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ ID json.RawMessage }
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(asked.ID)+`,"error":{"code":-32000,"message":"`+r.Header.Get("Authorization")+`"}}`)
		}, "Bearer [secret]"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for line := []byte(strings.Repeat(" ", 1<<16)); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			t.Cleanup(server.Close)
			c := connect(t, url(server.URL))
			c.log.await(t, "MCP server is not connected", 1)
			if all, _ := c.log.text(); !strings.Contains(all, tt.want) || strings.Contains(all, token) {
				t.Errorf("log: want text with %q and no secret, got\n%s", tt.want, all)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]mcptool.Config{
		"headers.X must not refer to the caller or its tenant: one connection serves all callers. Verify the assertion of each call instead": {URL: "https://mcp.example", Headers: map[string]string{"X": "${tenantSecret:SHOP}"}},
		"url must begin with https:// or http:// and have a host":                                                                            {URL: "mcp.example"},
		"url must not have a user or password; use a header with a secret":                                                                   {URL: "https://u:p@mcp.example"},
		"url must not have a fragment: it would not be sent":                                                                                 {URL: "https://mcp.example/#a"},
		"headers.Content-Type is reserved":                                                                                                   {URL: "https://x", Headers: map[string]string{"Content-Type": "x"}},
		"headers.A B is not a header name":                                                                                                   {URL: "https://x", Headers: map[string]string{"A B": "x"}},
		"headers cannot be used: secret GONE is missing: the worker has no PERDURE_SECRET_GONE":                                              {URL: "https://x", Headers: map[string]string{"A": "${secret:GONE}"}},
		"env cannot be used: secret GONE is missing: the worker has no PERDURE_SECRET_GONE":                                                  {Command: []string{os.Args[0]}, Env: map[string]string{"A": "${secret:GONE}"}},
		"env.A cannot be used: only ${secret:NAME} or ${tenantSecret:NAME} may follow a $, with a NAME of A-Z, 0-9 and _":                    {Command: []string{os.Args[0]}, Env: map[string]string{"A": "${HOME}"}},
		"env.A=B is not a variable name":                                                                                                     {Command: []string{os.Args[0]}, Env: map[string]string{"A=B": "x"}},
		`command has "/no/such", which is not a program on this machine`:                                                                     {Command: []string{"/no/such"}},
	} {
		_, err := mcptool.Start(cfg, mcptool.Environment{Logger: slog.New(slog.DiscardHandler), Secret: func(string) string { return "" }})
		var wrong *mcptool.ConfigError
		if !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	log := newWitness()
	s, err := mcptool.Start(mcptool.Config{Name: "play", URL: "http://127.0.0.1:1/"}, mcptool.Environment{Logger: slog.New(log), Secret: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	log.await(t, "127.0.0.1 is not an address on the public internet", 1)
}

func TestSilentProgram(t *testing.T) {
	t.Parallel()
	c := connect(t, stdio("broken"))
	c.log.await(t, "MCP server is not connected", 1)
	c.log.await(t, `text="no license: [secret]"`, 1)
}

// TestServersOfNode: the client works with servers of the Node SDK, an independent implementation.
func TestServersOfNode(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	const dir = "../../e2e/node/mcp"
	if _, err := os.Stat(dir + "/node_modules"); err != nil {
		t.Skip("npm has not installed the server: make unit does")
	}
	c := connect(t, mcptool.Config{Command: []string{node, dir + "/server.mjs"}})
	c.log.await(t, connected, 1)
	r := &reports{}
	result, err := c.find(t, "greet").Call(t.Context(), tools.Call{ID: "c1", Arguments: json.RawMessage(`{"name":"Ada"}`), Reporter: r})
	if err != nil || result.Content != "Hello, Ada!" || len(result.Parts) != 1 {
		t.Errorf("greeting = %+v, %v, want the text and one part", result, err)
	}
	if len(r.contents) == 0 {
		t.Error("number of progress reports = 0, want at least 1")
	}
	if got := c.call(t, "greet", `{"name":""}`); !got.IsError {
		t.Errorf("greeting without a name = %+v, want a failure", got)
	}
	if spec := c.find(t, "greet").Spec(); !spec.Idempotent || spec.Name != "play_greet" {
		t.Errorf("specification of greet = %+v, want an idempotent tool", spec)
	}
}
