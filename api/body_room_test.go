package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

// TestBodiesHaveBoundedMemory: while clients send large bodies, a node without room refuses another
// large body and accepts small ones. The room is free when a request has ended.
func TestBodiesHaveBoundedMemory(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.MaxBodyBytes = 600 << 10 })
	large := fmt.Sprintf(`{"reason":%q}`, strings.Repeat("x", 500<<10))
	cancel := func(body io.Reader) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node.http.URL+"/v1/threads/t/runs/r/cancel", body)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	var rest *io.PipeWriter
	var first chan int
	begin := func() {
		var body *io.PipeReader
		body, rest = io.Pipe()
		ended := make(chan int, 1)
		go func() { ended <- cancel(body) }()
		first = ended
		_, _ = io.WriteString(rest, large[:len(large)-1]) // fails if the server refuses the body
	}
	begin()
	// The pipe is empty, but the server may not have read all of it yet. The other body may even get
	// the room before it.
	waitFor(t, func() bool {
		select {
		case <-first:
			begin()
		default:
		}
		return cancel(strings.NewReader(large)) == http.StatusServiceUnavailable
	})
	if status := cancel(strings.NewReader(`{"reason":"x"}`)); status == http.StatusServiceUnavailable {
		t.Errorf("small body on a node without room: status = %d, want another", status)
	}
	if err := rest.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-first; status != http.StatusBadRequest {
		t.Errorf("first body: status = %d, want %d", status, http.StatusBadRequest)
	}
	waitFor(t, func() bool { return cancel(strings.NewReader(large)) == http.StatusBadRequest })
}
