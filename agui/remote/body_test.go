package remote

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/transport/egress"
)

// TestInputIsDroppedAtFirstEvent: a run that streams for long does not hold the files of its input: at the first
// event the garbage collector frees them, also after a redirect that has sent them twice.
func TestInputIsDroppedAtFirstEvent(t *testing.T) { // not parallel: it measures the memory of the process
	const size = 32 << 20
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/agent" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		if n < size {
			t.Errorf("the redirected request has %d bytes, want the whole input", n)
		}
		_, _ = fmt.Fprint(events(w), started)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the run goes on until the client leaves
	})
	transport := egress.Transport(egress.AnyNetwork)
	defer transport.CloseIdleConnections()
	largeCall := func() Call {
		content := agui.TextContent(strings.Repeat("x", size))
		return Call{URL: url, Input: agui.RunAgentInput{ThreadID: "t", RunID: "requested", Messages: []agui.Message{{ID: "u1", Role: agui.RoleUser, Content: content}}}}
	}
	for _, err := range NewClient(transport).Run(t.Context(), largeCall()) {
		if err != nil {
			t.Fatal(err)
		}
		var memory runtime.MemStats
		for range 10 { // a pool of encoding/json has the bytes for two collections more
			runtime.GC()
			runtime.ReadMemStats(&memory)
			if memory.HeapAlloc < size/2 {
				return
			}
		}
		t.Fatalf("the process has %d MiB at the first event, want the input of %d MiB to be gone", memory.HeapAlloc>>20, size>>20)
	}
}
