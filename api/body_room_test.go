package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth/policy"
)

// TestBodiesHaveBoundedMemory: a tenant that sends a large body gets 429 for another one, and other
// tenants are served until the node is full, with 503. Small bodies are accepted in any case. The
// memory is free when a request has ended.
func TestBodiesHaveBoundedMemory(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, func(c *api.Config) { c.MaxBodyBytes = 1000 << 10 })
	large := fmt.Sprintf(`{"reason":%q}`, strings.Repeat("x", 500<<10))
	cancel := func(tenant string, body io.Reader) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node.http.URL+"/v1/threads/t/runs/r/cancel", body)
		if err != nil {
			t.Error(err)
			return ""
		}
		req.Header.Set("X-Tenant", tenant)
		req.Header.Set("X-Role", policy.DefaultRoles.PlatformAdmin)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		for _, code := range []string{"quota_exceeded", "node_full"} {
			if strings.Contains(string(text), `"`+code+`"`) {
				return fmt.Sprintf("%d %s after %s", resp.StatusCode, code, resp.Header.Get("Retry-After"))
			}
		}
		return "served"
	}
	// hold sends all but the end of a large body, until another one gets want.
	hold := func(tenant, other, want string) (end func() string) {
		var rest *io.PipeWriter
		var first chan string
		begin := func() {
			var body *io.PipeReader
			body, rest = io.Pipe()
			ended := make(chan string, 1)
			go func() { ended <- cancel(tenant, body) }()
			first = ended
			_, _ = io.WriteString(rest, large[:len(large)-1]) // fails if the server refuses the body
		}
		begin()
		// The pipe is empty, but the server may not have read all of it yet. The other body may
		// even get the memory before it, or both may be refused: then a second one gets the memory.
		waitFor(t, func() bool {
			for range 5 { // the memory of a body that was refused is free when its answer is written
				if cancel(other, strings.NewReader(large)) != want {
					break
				}
			}
			select {
			case <-first:
				_ = rest.Close() // the transport may still read from the pipe
				begin()
				return false
			default:
				return cancel(other, strings.NewReader(large)) == want
			}
		})
		return func() string {
			if err := rest.Close(); err != nil {
				t.Error(err)
			}
			return <-first
		}
	}
	endAcme := hold("acme", "acme", "429 quota_exceeded after 5")
	wantEqual(t, "large body of another tenant", cancel("globex", strings.NewReader(large)), "served")
	endGlobex := hold("globex", "initech", "503 node_full after 5")
	for _, tenant := range []string{"acme", "globex", "initech"} {
		wantEqual(t, "small body of "+tenant, cancel(tenant, strings.NewReader(`{"reason":"x"}`)), "served")
	}
	wantEqual(t, "first body", endAcme(), "served")
	wantEqual(t, "body of the second tenant", endGlobex(), "served")
	wantEqual(t, "large body afterwards", cancel("acme", strings.NewReader(large)), "served")
}

// TestMessagesHaveBoundedMemory: a message on a WebSocket takes memory from that of bodies until its
// request has begun. A tenant with its share is told to try again later, and others are served.
func TestMessagesHaveBoundedMemory(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, func(c *api.Config) { c.MaxBodyBytes = 1000 << 10 })
	dial := func(tenant string) *wsClient {
		return node.dial("X-Tenant", tenant, "X-Role", policy.DefaultRoles.PlatformAdmin)
	}
	large := `{"type":"cancel","id":"1","threadId":"t","runId":"r","reason":"` + strings.Repeat("x", 500<<10) + `"`
	half := dial("acme")
	hasRead := make(chan struct{})
	half.conn.SetPongHandler(func(string) error {
		close(hasRead)
		return nil
	})
	answered := make(chan wsFrame, 1)
	go func() {
		f, err := half.read() // also handles the pong
		if err != nil {
			t.Error(err)
		}
		answered <- f
	}()
	w, err := half.conn.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, large); err != nil {
		t.Fatal(err)
	}
	if err := half.conn.WriteControl(websocket.PingMessage, nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	<-hasRead // all but the end of the message
	other := dial("acme")
	_ = other.conn.WriteMessage(websocket.TextMessage, []byte(large+"}")) // fails if the server has closed the socket before
	other.wantClosed(websocket.CloseTryAgainLater)
	served := dial("globex")
	for range 3 {
		served.send(large + "}")
		wantEqual(t, "large message of another tenant", served.next().Pointer, "/reason")
	}
	if _, err := io.WriteString(w, "}"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "first message", (<-answered).Pointer, "/reason")
	again := dial("acme")
	again.send(large + "}")
	wantEqual(t, "large message afterwards", again.next().Pointer, "/reason")
}
