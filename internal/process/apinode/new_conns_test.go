package apinode

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestNewConnectionsDoNotDelayShutdown: a connection without a request does not delay a shutdown. A
// request in progress does.
func TestNewConnectionsDoNotDelayShutdown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, opened, asked, answer := trackNewConns(), make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(asked)
			<-answer
			_, _ = io.WriteString(w, "answered")
		}),
		ConnState: func(c net.Conn, state http.ConnState) {
			u.track(c, state)
			if state == http.StateNew {
				opened <- struct{}{}
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	idle, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	<-opened
	body := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		body <- string(text)
	}()
	<-asked

	u.close()
	if n, err := idle.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the connection without a request: %d, %v, want its end", n, err)
	}
	close(answer)
	if err := server.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if got := <-body; got != "answered" {
		t.Errorf("answer of the active request = %s, want answered", got)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("error of the server = %v, want %v", err, http.ErrServerClosed)
	}
}
