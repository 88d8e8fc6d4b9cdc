package kit

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// Proxy returns an address that forwards to the endpoint's API, and stays the same when the API
// restarts.
func (p *Endpoint) Proxy(t *testing.T) string {
	t.Helper()
	forward := p.reverseProxy()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.proxied.RLock()
		defer p.proxied.RUnlock()
		forwardWhole(forward, w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// forwardWhole forwards a request when its body has arrived. The server closes the request body
// when the response begins. If the transport has not read the body to its end by then, it closes
// the connection.
func forwardWhole(to http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	to.ServeHTTP(w, r)
}

// reverseProxy returns a handler that forwards to the endpoint's API, wherever it listens then. It
// answers 502 while the API does not run.
func (p *Endpoint) reverseProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
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
}

// AwaitResponses waits until the proxy has forwarded every response to its end. CopilotKit's
// runtime does not handle the error of a broken connection: its process exits, even if the run has
// finished and the client lost nothing.
func (p *Endpoint) AwaitResponses() {
	p.proxied.Lock()
	defer p.proxied.Unlock()
}
