package live

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSlowHTTP2ClientIsDisconnected: over HTTP/2, too, the handler learns that the client does not
// read. Other requests of the connection continue.
func TestSlowHTTP2ClientIsDisconnected(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server := httptest.NewUnstartedServer(Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			return
		}
		var err error
		for piece := make([]byte, PieceBytes); err == nil; {
			_, err = w.Write(piece)
		}
		ended <- err
	}), 200*time.Millisecond))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-ended; resp.ProtoMajor != 2 || !errors.Is(err, ErrSlow) {
		t.Errorf("write over %s: got %v, want %v", resp.Proto, err, ErrSlow)
	}
	other, err := server.Client().Get(server.URL + "/other")
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Body.Close()
}
