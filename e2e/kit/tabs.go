package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// PageOrigin is a server of the page in node/page at the origin of the API. Its address stays the
// same when the API restarts.
type PageOrigin struct {
	URL string
	// sockets is the number of WebSockets that the pages have opened.
	sockets atomic.Int64
}

// Sockets returns how many WebSockets have been opened.
func (o *PageOrigin) Sockets() int64 { return o.sockets.Load() }

// ServePage builds the page with the TypeScript client that perdure embeds, and serves it together with
// the API of p. sources replaces files of the page by their paths in src; nil = none.
func ServePage(t *testing.T, p *Endpoint, sources map[string]string) *PageOrigin {
	t.Helper()
	files := http.FileServer(http.Dir(buildPage(t, sources)))
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			where, err := p.Addresses(r.In.Context())
			if err != nil {
				return // the client is gone
			}
			if to, err := url.Parse(where.API); err == nil {
				r.SetURL(to)
				r.Out.Host = r.In.Host // the API compares it with the origin of the page
			}
		},
		Transport:     &http.Transport{DisableKeepAlives: true},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	o := &PageOrigin{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			files.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("Upgrade") != "" {
			o.sockets.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o.URL = server.URL
	return o
}

// buildPage installs the packed client into a new copy of node/page, and returns the directory with
// the built page.
func buildPage(t *testing.T, sources map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	execute := func(dir, name string, args ...string) {
		t.Helper()
		if err := Execute(dir, name, args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, body []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"perdure-client-0.0.0.tgz": filepath.Join("..", "internal", "starter", "client", "perdure-client.tgz")}
	for _, name := range []string{"package.json", "package-lock.json", "index.html", "vite.config.js", "src/main.jsx"} {
		files[name] = filepath.Join("node", "page", name)
	}
	for name, from := range files {
		body, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(name, body)
	}
	for name, body := range sources {
		write(filepath.Join("src", name), []byte(body))
	}
	execute(dir, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "./perdure-client-0.0.0.tgz")
	execute(dir, "npx", "vite", "build", "--logLevel", "warn")
	return filepath.Join(dir, "dist")
}

// NeedBrowser returns the path of Debian's chromium. Without it the test is skipped; make e2e installs
// it as root on Debian.
func NeedBrowser(t *testing.T) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("the browser of this test, chromium, is not installed")
	}
	return chromium
}

// Tabs are the tabs of a browser that show the page, run by tabs.mjs.
type Tabs struct {
	stdin io.Writer
	lines *json.Decoder
}

// ShownTab is what a tab shows.
type ShownTab struct {
	Thread     string    `json:"thread"`
	Messages   []Message `json:"messages"`
	Status     string    `json:"status"`
	Connection string    `json:"connection"`
}

// OpenBrowser starts a browser without tabs.
func OpenBrowser(t *testing.T, origin *PageOrigin) *Tabs {
	t.Helper()
	dir := filepath.Join("node", "page")
	if err := Install(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "tabs.mjs"), origin.URL)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
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
		_ = stdin.Close() // the program closes the browser and ends
		_ = cmd.Wait()
		cancel()
	})
	return &Tabs{stdin: stdin, lines: json.NewDecoder(bufio.NewReader(stdout))}
}

// Do sends a command to the browser and returns what its tabs show afterwards. Errors of a page fail
// the test.
func (b *Tabs) Do(t *testing.T, command map[string]any) []ShownTab {
	t.Helper()
	if err := json.NewEncoder(b.stdin).Encode(command); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Tabs     []ShownTab `json:"tabs"`
		Problems []string   `json:"problems"`
	}
	if err := b.lines.Decode(&out); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	for _, problem := range out.Problems {
		t.Errorf("a page reports: %s", problem)
	}
	return out.Tabs
}
