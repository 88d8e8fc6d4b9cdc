package e2e

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

// browser is a page with CopilotKit, on one thread, see browser.mjs.
type browser struct {
	stdin io.Writer
	lines *json.Decoder
}

// seen is what a page prints.
type seen struct {
	Type       string          `json:"type"`
	Run        string          `json:"run"`
	Messages   []message       `json:"messages"`
	Interrupts []interrupt     `json:"interrupts"`
	Args       json.RawMessage `json:"args"`
	Text       string          `json:"text"`
}

// open opens a page; tool is the name of the tool that it brings, "" = none.
func (c copilotKit) open(t *testing.T, agent, thread, tool string) *browser {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "browser.mjs"), c.url, agent, thread, tool)
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

// tell tells the page what to do, and returns what it prints next. What it complains about fails
// the test.
func (b *browser) tell(t *testing.T, command map[string]any) seen {
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

// proxy returns an address that stays while the api behind an endpoint comes and goes.
func (p *endpoint) proxy(t *testing.T) string {
	t.Helper()
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			where, err := p.addresses(r.In.Context())
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

// awaitAnswers waits until the proxy has forwarded every answer to its end. CopilotKit's runtime
// does not handle the error of a connection that breaks: its process exits, also if the run has
// finished and the client lost nothing.
func (p *endpoint) awaitAnswers() {
	p.proxied.Lock()
	defer p.proxied.Unlock()
}
