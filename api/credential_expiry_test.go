package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/transport/socket"
)

// lasts is the validity of credentials that expire during a test: long enough to connect.
const lasts = 2 * time.Second

// expiringCredentials accepts every caller. The credentials of a request with X-Short expire.
func expiringCredentials(expires *atomic.Pointer[time.Time]) authenticatorFunc {
	return func(r *http.Request) (auth.Identity, error) {
		identity := auth.Identity{Principal: auth.Principal{Tenant: "default", Subject: "ann"}}
		if r.Header.Get("X-Short") != "" {
			identity.Expires = time.Now().Add(lasts)
			expires.Store(&identity.Expires)
		}
		return identity, nil
	}
}

// TestStreamEndsWhenCredentialsExpire: a stream ends when the credentials of its request expire,
// also before its run ends. A client with new credentials continues after its last event. The run
// is not cancelled.
func TestStreamEndsWhenCredentialsExpire(t *testing.T) {
	t.Parallel()
	var expires atomic.Pointer[time.Time]
	node := setup(t, func(c *api.Config) { c.Auth = expiringCredentials(&expires) })
	cancels := node.countCancels()
	runs := node.captureOutputs()
	in := inputOf("r1", "hello")
	in.ForwardedProps = []byte(`{"perdure":{"cancelOnDisconnect":true}}`)
	cut := make(chan answer)
	go func() { cut <- node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, in), "X-Short", "1") }()
	speaker := runs.next(node)
	speaker.say("one ")
	first := <-cut
	early := time.Until(*expires.Load())
	if early > 0 {
		t.Errorf("stream ended %v before the expiry, want at most %v", early, 0)
	}
	first.mustStatus(t, "status", http.StatusOK)
	if !strings.Contains(first.body, "one ") {
		t.Errorf("body = %q, want text with %q", first.body, "one ")
	}
	if strings.Contains(first.body, "RUN_FINISHED") {
		t.Errorf("body = %q, want no %q", first.body, "RUN_FINISHED")
	}
	speaker.say("two")
	speaker.end()
	ids := cursors(first.body)
	rest := node.do(http.MethodGet, "/v1/threads/t/runs/r1/events", "", "Last-Event-ID", ids[len(ids)-1])
	if strings.Contains(rest.body, "one ") {
		t.Errorf("body = %q, want no %q", rest.body, "one ")
	}
	if !strings.Contains(rest.body, "two") {
		t.Errorf("body = %q, want text with %q", rest.body, "two")
	}
	if !strings.Contains(rest.body, "RUN_FINISHED") {
		t.Errorf("body = %q, want text with %q", rest.body, "RUN_FINISHED")
	}
	wantEqual(t, "number of cancels", cancels.Load(), 0)
}

func TestSocketEndsWhenCredentialsExpire(t *testing.T) {
	t.Parallel()
	var expires atomic.Pointer[time.Time]
	node := setup(t, func(c *api.Config) { c.Auth = expiringCredentials(&expires) })
	cancels := node.countCancels()
	runs := node.captureOutputs()
	watcher, late := node.dial("X-Short", "1"), node.dial("X-Short", "1")
	in := inputOf("r1", "hello")
	in.ForwardedProps = []byte(`{"perdure":{"cancelOnDisconnect":true}}`)
	watcher.send(runFrame("run", in))
	speaker := runs.next(node)
	speaker.say("one ")
	// A frame after the expiry has no effect, while the socket waits for its client to close.
	late.conn.SetCloseHandler(func(int, string) error { return nil })
	if _, _, err := late.conn.ReadMessage(); !websocket.IsCloseError(err, socket.Unauthorized) {
		t.Errorf("end of the socket: got %v, want Unauthorized", err)
	}
	late.send(map[string]any{"type": "cancel", "id": "c", "threadId": "t", "runId": "r1"})
	watcher.wantClosed(socket.Unauthorized)
	late.disconnect()
	node.server.Drain()
	if err := node.server.Wait(node.ctx()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "number of cancels", cancels.Load(), 0)
}

// countCancels counts the cancelled runs.
func (n *node) countCancels() *atomic.Int32 {
	var count atomic.Int32
	n.temporal.cancel = func(string) error { count.Add(1); return nil }
	return &count
}
