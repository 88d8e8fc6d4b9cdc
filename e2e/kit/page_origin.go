package kit

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
)

// PageOrigin is a server of a page at the origin of the API. Its address stays the same when the
// API restarts.
type PageOrigin struct {
	URL string
	// RefusesSockets makes the server refuse WebSockets with 403, as some proxies do.
	RefusesSockets atomic.Bool
	// SwallowsSockets makes the server give no response to the handshake of a WebSocket.
	SwallowsSockets atomic.Bool

	sockets, streams, mostStreams atomic.Int64
}

// Sockets returns how many WebSockets have been requested.
func (o *PageOrigin) Sockets() int64 { return o.sockets.Load() }

// MostStreams returns how many event streams over HTTP were open at once.
func (o *PageOrigin) MostStreams() int64 { return o.mostStreams.Load() }

// ServePage serves a built page together with the API of p.
func ServePage(t *testing.T, p *Endpoint, page string) *PageOrigin {
	t.Helper()
	files := http.FileServer(http.Dir(page))
	forward := p.reverseProxy()
	rewrite := forward.Rewrite
	forward.Rewrite = func(r *httputil.ProxyRequest) {
		rewrite(r)
		r.Out.Host = r.In.Host // the API compares it with the origin of the page
	}
	o := &PageOrigin{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isStream := strings.HasSuffix(r.URL.Path, "/events") || r.URL.Path == "/v1/streams" && r.Method == http.MethodPost
		switch {
		case !strings.HasPrefix(r.URL.Path, "/v1/"):
			files.ServeHTTP(w, r)
			return
		case r.Header.Get("Upgrade") != "":
			o.sockets.Add(1)
			if o.RefusesSockets.Load() {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			if o.SwallowsSockets.Load() {
				<-r.Context().Done()
				return
			}
		case isStream:
			open := o.streams.Add(1)
			defer o.streams.Add(-1)
			for most := o.mostStreams.Load(); open > most && !o.mostStreams.CompareAndSwap(most, open); most = o.mostStreams.Load() {
			}
		}
		forwardWhole(forward, w, r)
	}))
	t.Cleanup(server.Close)
	o.URL = server.URL
	return o
}
