package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/transport/egress"
)

// input is the input of the tests' runs.
var input = agui.RunAgentInput{ThreadID: "t", RunID: "requested", Messages: []agui.Message{
	{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("Hi")},
}}

// serve returns the URL of a server that answers with an event stream.
func serve(t *testing.T, stream string) string {
	t.Helper()
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(events(w), stream) })
}

// events begins an event stream.
func events(w http.ResponseWriter) http.ResponseWriter {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return w
}

// serveFunc returns the URL of a server.
func serveFunc(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL + "/agent"
}

// received is the result of a call.
type received struct {
	events []Event
	err    error
}

// types returns the types of the events.
func (got received) types() (list []string) {
	for _, e := range got.events {
		list = append(list, string(e.EventType()))
	}
	return list
}

// run makes a call with the input of the tests, unless the call has its own.
func run(t *testing.T, url string, call Call) (got received) {
	t.Helper()
	transport := egress.Transport(egress.AnyNetwork)
	defer transport.CloseIdleConnections()
	call.URL = url
	if call.Input.RunID == "" {
		call.Input = input
	}
	for e, err := range NewClient(transport).Run(t.Context(), call) {
		if err != nil {
			got.err = err
			continue
		}
		got.events = append(got.events, e)
	}
	return got
}
