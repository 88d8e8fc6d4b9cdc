package fileroutes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestContentIsClosedDuringRead: content may be closed while another goroutine reads it, as http.ServeContent does
// for several ranges when the client is gone. The other goroutine then gets an error.
func TestContentIsClosedDuringRead(t *testing.T) {
	t.Parallel()
	store, err := files.Open(t.Context(), streamtest.Open(t), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := store.Put(t.Context(), files.Upload{Tenant: "acme", Owner: "ann", Body: bytes.NewReader(make([]byte, 1<<20))})
	if err != nil {
		t.Fatal(err)
	}
	content, err := store.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	r := &contentReader{content: content}
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for {
			_, err := r.Read(make([]byte, 1<<10))
			select {
			case began <- struct{}{}:
			default:
			}
			if err == nil || errors.Is(err, io.EOF) {
				_, err = r.Seek(0, io.SeekStart)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	<-began
	if err := r.close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after close: got %v, want %v", err, os.ErrClosed)
	}
}
