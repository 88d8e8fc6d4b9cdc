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
	"testing"
)

// LeadTo lets requests go to an api.
func (p *Endpoint) LeadTo(t *testing.T, to *Gateway) {
	t.Helper()
	where, err := to.Addresses(t.Context())
	if err == nil {
		err = p.Serves(t.Context(), where)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const Shipper = "/v1/agents/shipper/runs"

// asksWhere runs until the tool asks.
func (p *Perdure) asksWhere(t *testing.T, prompt string) (Input, Interrupt) {
	t.Helper()
	in := NewInput(prompt)
	f := p.FollowAgent(t, Shipper, in)
	f.Finish(t)
	return in, InterruptsOf(t, f.Events)[0]
}

func (p *Perdure) AskREST(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.asksWhere(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":7}}`); status != http.StatusUnprocessableEntity || a["pointer"] != "/content/city" {
			t.Errorf("an answer that does not fit: %d %v", status, a)
		}
		WantResult(t, p.Endpoint, in, CameTo(asked.ToolCallID, "Ulm"), http.StatusNotFound, "unknown_tool_call")
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":"Ulm"}}`); status != http.StatusOK {
			t.Errorf("%d %v", status, a)
		}
		p.FollowThread(t, in).UntilSuccess(t)
	}
}

func (p *Perdure) AskStock(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.asksWhere(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		entry := map[string]any{"interruptId": asked.ID, "status": "resolved", "payload": map[string]any{"city": "Ulm"}}
		Generations[0].Drive(t, p, Script{URL: p.Url(Shipper), ThreadID: in.ThreadID, Messages: in.Messages, Runs: []ScriptedRun{
			{RunID: "run-2", Parameters: map[string]any{"resume": []any{entry}}},
		}}).Finish(t)
	}
}

func (p *Perdure) AskPage(t *testing.T, kit CopilotKit, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	thread := NewThread()
	p.Threads.Use(thread)
	page := kit.Open(t, "shipper", thread, "")
	asked := page.Tell(t, map[string]any{"say": User(prompt)})
	if len(asked.Interrupts) != 1 {
		t.Fatalf("the page is told %+v", asked)
	}
	return asked.Interrupts[0], func(t *testing.T) {
		t.Helper()
		if end := page.Tell(t, map[string]any{"decide": map[string]any{"city": "Ulm"}, "sameRun": true}); len(end.Interrupts) != 0 {
			t.Errorf("the page is told %+v", end)
		}
	}
}

// browser is a page with CopilotKit, on one thread, see browser.mjs.
type browser struct {
	stdin io.Writer
	lines *json.Decoder
}

// seen is what a page prints.
type seen struct {
	Type       string          `json:"type"`
	Run        string          `json:"run"`
	Messages   []Message       `json:"messages"`
	Interrupts []Interrupt     `json:"interrupts"`
	Args       json.RawMessage `json:"args"`
	Text       string          `json:"text"`
}

// Open opens a page; tool is the name of the tool that it brings, "" = none.
func (c CopilotKit) Open(t *testing.T, agent, thread, tool string) *browser {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "browser.mjs"), c.Url, agent, thread, tool)
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
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it does not end by itself
	})
	return &browser{stdin: stdin, lines: json.NewDecoder(bufio.NewReader(stdout))}
}

// Tell tells the page what to do, and returns what it prints next. What it complains about fails
// the test.
func (b *browser) Tell(t *testing.T, command map[string]any) seen {
	t.Helper()
	if err := json.NewEncoder(b.stdin).Encode(command); err != nil {
		t.Fatal(err)
	}
	for {
		var s seen
		if err := b.lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "console" {
			return s
		}
		t.Errorf("the page complains: %s", s.Text)
	}
}

// Proxy returns an address that stays while the api behind an endpoint comes and goes.
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
		// Connections of its own: those of the default transport are closed by every test server
		// that ends.
		Transport:     &http.Transport{DisableKeepAlives: true},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // clients are told
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.proxied.RLock()
		defer p.proxied.RUnlock()
		// The server closes the body when the answer begins. If the transport has not read its end
		// by then, it breaks the connection.
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

// AwaitAnswers waits until the proxy has forwarded every answer to its end. CopilotKit's runtime
// does not handle the error of a connection that breaks: its process exits, also if the run has
// finished and the client lost nothing.
func (p *Endpoint) AwaitAnswers() {
	p.proxied.Lock()
	defer p.proxied.Unlock()
}
