package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
)

// TestTraceEventsBeginAgain: after a lost connection the trace begins again, and ends with its last
// event. A refusal ends it with the problem.
func TestTraceEventsBeginAgain(t *testing.T) {
	t.Parallel()
	const trace, spans, end = `data: {"type":"trace","trace":{"runId":"r","spans":[{"id":"2","kind":"run"}]}}` + "\n\n",
		`data: {"type":"spans","run":{"status":"finished"},"spans":[{"id":"2","kind":"run","status":"finished"}]}` + "\n\n", `data: {"type":"end"}` + "\n\n"
	const request = "GET /v1/threads/t/runs/r/trace"
	s := serve(t, streams(t, request, trace), streams(t, request, trace+spans+end), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"status":404,"code":"unknown_run","title":"Not Found"}`))
	})
	c := s.client(t, client.Config{})
	var got []string
	for e, err := range c.TraceEvents(t.Context(), "t", "r") {
		if err != nil {
			t.Fatal(err)
		}
		text := e.Type
		if e.Trace != nil {
			text += " " + e.Trace.Spans[0].Kind
		}
		for _, s := range e.Spans {
			text += " " + s.Status
		}
		got = append(got, text)
	}
	if want := "trace run, trace run, spans finished, end"; strings.Join(got, ", ") != want {
		t.Errorf("events = %q, want %q", got, want)
	}
	for _, err := range c.TraceEvents(t.Context(), "t", "r") {
		if problem, ok := errors.AsType[*client.Problem](err); !ok || problem.Code != "unknown_run" {
			t.Errorf("error = %v, want unknown_run", err)
		}
	}
}
