package kit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// RouteTo makes the endpoint send its requests to an API process.
func (p *Endpoint) RouteTo(t *testing.T, to *API) {
	t.Helper()
	where, err := to.Addresses(t.Context())
	if err == nil {
		err = p.Up(t.Context(), where)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ShipperPath is the path that starts runs of the agent shipper, whose tools ask for the city to
// ship to.
const ShipperPath = "/v1/agents/shipper/runs"

// runUntilAsked runs the agent shipper until its tool asks, and returns the input and the
// interrupt.
func (p *Perdure) runUntilAsked(t *testing.T, prompt string) (Input, Interrupt) {
	t.Helper()
	in := NewInput(prompt)
	f := p.FollowAgent(t, ShipperPath, in)
	f.Finish(t)
	return in, InterruptsOf(t, f.Events)[0]
}

// AskOverREST runs the agent shipper until its tool asks. The returned function answers over REST.
func (p *Perdure) AskOverREST(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.runUntilAsked(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":7}}`); status != http.StatusUnprocessableEntity || a["pointer"] != "/content/city" {
			t.Errorf("an invalid answer: %d %v", status, a)
		}
		WantResult(t, p.Endpoint, in, ToolResultBody(asked.ToolCallID, "Ulm"), http.StatusNotFound, "unknown_tool_call")
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":"Ulm"}}`); status != http.StatusOK {
			t.Errorf("%d %v", status, a)
		}
		p.FollowThread(t, in).UntilSuccess(t)
	}
}

// AskStockClient runs the agent shipper until its tool asks. The returned function answers with a
// stock HttpAgent.
func (p *Perdure) AskStockClient(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.runUntilAsked(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		entry := map[string]any{"interruptId": asked.ID, "status": "resolved", "payload": map[string]any{"city": "Ulm"}}
		Generations[0].Drive(t, p, Script{URL: p.URL(ShipperPath), ThreadID: in.ThreadID, Messages: in.Messages, Runs: []ScriptedRun{
			{RunID: "run-2", Parameters: map[string]any{"resume": []any{entry}}},
		}}).Finish(t)
	}
}

// AskBrowserPage runs the agent shipper from a page with CopilotKit until its tool asks. The
// returned function answers in the page.
func (p *Perdure) AskBrowserPage(t *testing.T, kit CopilotKit, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	thread := NewThread()
	p.Threads.Add(thread)
	page := kit.Open(t, "shipper", thread, "")
	asked := page.Do(t, map[string]any{"say": UserMessage(prompt)})
	if len(asked.Interrupts) != 1 {
		t.Fatalf("the page printed %+v", asked)
	}
	return asked.Interrupts[0], func(t *testing.T) {
		t.Helper()
		if end := page.Do(t, map[string]any{"decide": map[string]any{"city": "Ulm"}, "sameRun": true}); len(end.Interrupts) != 0 {
			t.Errorf("the page printed %+v", end)
		}
	}
}

// browserPage is a page with CopilotKit that shows one thread, run by browser.mjs.
type browserPage struct {
	stdin           io.Writer
	lines           *json.Decoder
	toleratesErrors bool
	// Close closes the page, as a person closes a tab.
	Close func()
}

// pageOutput is a line that a page prints.
type pageOutput struct {
	Type       string          `json:"type"`
	Run        string          `json:"run"`
	Messages   []Message       `json:"messages"`
	Interrupts []Interrupt     `json:"interrupts"`
	Args       json.RawMessage `json:"args"`
	Text       string          `json:"text"`
	// Error is the message of the run's RUN_ERROR.
	Error string `json:"error"`
}

// Open opens a page. tool is the name of the client tool of the page; "" = none.
func (c CopilotKit) Open(t *testing.T, agent, thread, tool string) *browserPage {
	t.Helper()
	return c.OpenAs(t, "", agent, thread, tool)
}

// OpenAs is like Open, with a bearer token; "" = none.
func (c CopilotKit) OpenAs(t *testing.T, token, agent, thread, tool string) *browserPage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "browser.mjs"), c.URL, agent, thread, tool, token)
	cmd.Dir, cmd.Stderr = filepath.Join("node", "copilotkit"), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := &browserPage{stdin: stdin, lines: json.NewDecoder(bufio.NewReader(stdout))}
	page.Close = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait() // killed by cancel
	})
	t.Cleanup(page.Close)
	return page
}

// Do sends a command to the page and returns the next line that the page prints.
func (b *browserPage) Do(t *testing.T, command map[string]any) pageOutput {
	t.Helper()
	b.Send(t, command)
	return b.Next(t)
}

// Send sends a command to the page.
func (b *browserPage) Send(t *testing.T, command map[string]any) {
	t.Helper()
	if err := json.NewEncoder(b.stdin).Encode(command); err != nil {
		t.Fatal(err)
	}
}

// Next returns the next line that the page prints. A console message of the page fails the test,
// unless TolerateErrors was called.
func (b *browserPage) Next(t *testing.T) pageOutput {
	t.Helper()
	for {
		var s pageOutput
		if err := b.lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "console" {
			return s
		}
		if !b.toleratesErrors {
			t.Errorf("console message of the page: %s", s.Text)
		}
	}
}

// TolerateErrors accepts console messages from here on, because the runtime is killed.
func (b *browserPage) TolerateErrors() { b.toleratesErrors = true }

// Proxy returns an address that forwards to the endpoint's API, and stays the same when the API
// restarts.
func (p *Endpoint) Proxy(t *testing.T) string {
	t.Helper()
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			where, err := p.Addresses(r.In.Context())
			if err != nil {
				return // the client is gone
			}
			if to, err := url.Parse(where.API); err == nil {
				r.SetURL(to)
			}
		},
		// The proxy needs its own connections: a test server that ends closes those of the default
		// transport.
		Transport:     &http.Transport{DisableKeepAlives: true},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // clients are told
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.proxied.RLock()
		defer p.proxied.RUnlock()
		// The server closes the request body when the response begins. If the transport has not
		// read the body to its end by then, it closes the connection.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// AwaitResponses waits until the proxy has forwarded every response to its end. CopilotKit's
// runtime does not handle the error of a broken connection: its process exits, even if the run has
// finished and the client lost nothing.
func (p *Endpoint) AwaitResponses() {
	p.proxied.Lock()
	defer p.proxied.Unlock()
}
