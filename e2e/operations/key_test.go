package operations

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/e2e/kit"
)

// The keys of TestRevokedKeys.
const (
	keyOfAnn   = "key-of-ann-which-is-revoked"
	keyOfBob   = "key-of-bob-which-stays-valid"
	keyOfGuest = "key-of-a-guest-which-expires"
)

// TestRevokedKeys: a key that is removed from the file, or that expires, ends its open streams and
// WebSockets within seconds. The run, and the readers with other keys, continue.
func TestRevokedKeys(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	lines := map[string]string{keyOfAnn: "", keyOfBob: ""}
	writeKeys(t, keys, lines)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.Flags = []string{"--log-level", "info"}
	p.Start(t)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	prompt, done := kit.Marked("Ask me."), kit.Marked("Thank you.")
	kit.ScriptColorPicks(t, prompt, done, "sky")
	in := kit.NewInput(prompt).Hold()
	in.Tools = kit.PickColor
	bobs := openStream(t, p.RequestAs(t, keyOfBob, http.MethodPost, "/v1/agents/clerk/runs", in))
	var calls []string
	for calls == nil {
		e, err := bobs.Next()
		if err != nil {
			t.Fatal(err)
		}
		if kit.IsCustom(e) {
			calls = kit.CustomValue[[]string](t, e, "perdure.toolCalls")
		}
	}
	shares := map[string]any{"shares": []any{map[string]any{"everyone": true, "access": "read"}}}
	if resp := p.RequestAs(t, keyOfBob, http.MethodPut, "/v1/threads/"+in.ThreadID+"/shares", shares); resp.StatusCode != http.StatusOK {
		t.Fatalf("share: got %s, want %d", resp.Status, http.StatusOK)
	}
	lines[keyOfGuest] = ", expires: " + time.Now().Add(5*time.Second).UTC().Format(time.RFC3339)
	writeKeys(t, keys, lines)
	p.Output.Await(t, "the file of API keys has changed")
	guests := readKey(t, p, keyOfGuest, in)
	anns := readKey(t, p, keyOfAnn, in)
	bobsSocket := dialWithKey(t, p, keyOfBob)

	wantEnd(t, "the key that expires", guests)
	kit.WantProblem(t, p.RequestAs(t, keyOfGuest, http.MethodGet, "/v1/threads", nil), 401, "unauthenticated")

	if err := os.WriteFile(keys, []byte("keys: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Output.Await(t, "the file of API keys is invalid")
	if resp := p.RequestAs(t, keyOfAnn, http.MethodGet, "/v1/threads", nil); resp.StatusCode != http.StatusOK {
		t.Errorf("a request after an invalid file: got %s, want %d", resp.Status, http.StatusOK)
	}
	delete(lines, keyOfAnn)
	writeKeys(t, keys, lines)
	wantEnd(t, "the removed key", anns)
	kit.WantProblem(t, p.RequestAs(t, keyOfAnn, http.MethodGet, "/v1/threads", nil), 401, "unauthenticated")

	if err := bobsSocket.WriteJSON(map[string]string{"type": "subscribe", "id": "s", "threadId": in.ThreadID, "runId": in.RunID}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bobsSocket.ReadMessage(); err != nil {
		t.Errorf("the WebSocket of another key: %v", err)
	}
	result := p.RequestAs(t, keyOfBob, http.MethodPost, "/v1/threads/"+in.ThreadID+"/tool-results", kit.ToolResultBody(calls[0], kit.Marked("blue")))
	if result.StatusCode != http.StatusOK {
		t.Fatalf("result of the call: got %s, want %d", result.Status, http.StatusOK)
	}
	for {
		e, err := bobs.Next()
		if err != nil {
			t.Fatalf("the stream of another key ended before its run: %v", err)
		}
		if e.Terminal() {
			break
		}
	}
	if n := strings.Count(p.Output.String(), "the file of API keys is invalid"); n != 1 {
		t.Errorf("warnings about the invalid file = %d, want 1", n)
	}
}

// writeKeys writes a file of keys. The values are further members of their entries.
func writeKeys(t *testing.T, file string, keys map[string]string) {
	t.Helper()
	text := "keys:\n"
	for key, more := range keys {
		text += fmt.Sprintf("  - {key: %s, subject: %s%s}\n", key, key[:10], more)
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// keyReader reads a run with a key, over HTTP and over a WebSocket.
type keyReader struct {
	stream *kit.EventStream
	socket *websocket.Conn
}

// readKey opens a stream and a WebSocket with a key, and reads their first events.
func readKey(t *testing.T, p *kit.Perdure, key string, in kit.Input) keyReader {
	t.Helper()
	r := keyReader{openStream(t, p.RequestAs(t, key, http.MethodGet, kit.EventsPath(in), nil)), dialWithKey(t, p, key)}
	if _, err := r.stream.Next(); err != nil {
		t.Fatal(err)
	}
	if err := r.socket.WriteJSON(map[string]string{"type": "subscribe", "id": "s", "threadId": in.ThreadID, "runId": in.RunID}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.socket.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	return r
}

// wantEnd waits for the end of both readers of a key: the stream has no terminal event, and the
// WebSocket has the close code 3000.
func wantEnd(t *testing.T, what string, r keyReader) {
	t.Helper()
	for {
		e, err := r.stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || e.Terminal() {
			t.Fatalf("the stream of %s: got %s, %v, want its end without a terminal event", what, e.Type, err)
		}
	}
	for {
		if _, _, err := r.socket.ReadMessage(); websocket.IsCloseError(err, 3000) {
			return
		} else if err != nil {
			t.Fatalf("the WebSocket of %s: got %v, want the close code 3000", what, err)
		}
	}
}

// openStream returns the events of a response.
func openStream(t *testing.T, resp *http.Response) *kit.EventStream {
	t.Helper()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("stream: got %s, want %d", resp.Status, http.StatusOK)
	}
	s, err := kit.ReadEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dialWithKey opens a WebSocket with a key in the subprotocol.
func dialWithKey(t *testing.T, p *kit.Perdure, key string) *websocket.Conn {
	t.Helper()
	dialer := &websocket.Dialer{Subprotocols: []string{"ag-ui.perdure.v1", "bearer." + key}}
	conn, resp, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(p.URL("/v1/ws"), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(kit.WaitTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}
