package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// script is a server that answers each request with its next handler.
type script struct {
	*httptest.Server
	asked atomic.Int32
}

// serve answers the i-th request with the i-th handler.
func serve(t *testing.T, answers ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(s.asked.Add(1))
		if n > len(answers) {
			t.Errorf("request %d: got %s %s, want no further request", n, r.Method, r.URL)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		answers[n-1](w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() {
		if got := int(s.asked.Load()); got != len(answers) {
			t.Errorf("requests: got %d, want %d", got, len(answers))
		}
	})
	return s
}

// client returns a client of the server.
func (s *script) client(t *testing.T, how client.Config) *client.Client {
	t.Helper()
	how.URL = s.URL
	c, err := client.New(how)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// streams answers a request with these bytes, and ends the response. The request must have the last
// cursor.
func streams(t *testing.T, want string, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Method + " " + r.URL.String() + " " + r.Header.Get("Last-Event-ID"); strings.TrimSpace(got) != want {
			t.Errorf("request: got %q, want %q", got, want)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
	}
}

// refusal answers with a problem.
func refusal(status int, code, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":"x","status":%d,"code":%q,"detail":"so it is","new":1}`, status, code)
	}
}

const (
	started  = `{"type":"RUN_STARTED","threadId":"t 1","runId":"r/1","protocolVersion":"1.0"}`
	step     = `{"type":"STEP_STARTED","stepName":"model"}`
	finished = `{"type":"RUN_FINISHED","threadId":"t 1","runId":"r/1"}`

	post   = "POST /v1/agents/demo/runs"
	resume = "GET /v1/threads/t%201/runs/r%2F1/events"
)

var input = agui.RunAgentInput{ThreadID: "t 1", RunID: "r/1", ProtocolVersion: agui.Version}

// event returns a server-sent event.
func event(id, data string) string { return "id: " + id + "\ndata: " + data + "\n\n" }

// read reads a stream to its end.
func read(events func(func(client.Event, error) bool)) (got []string, err error) {
	for e, err := range events {
		if err != nil {
			return got, err
		}
		got = append(got, e.Cursor+" "+string(e.EventType()))
	}
	return got, nil
}

func TestStreamsContinueAfterCursor(t *testing.T) {
	t.Parallel()
	s := serve(t,
		refusal(http.StatusServiceUnavailable, "unavailable", ""),
		streams(t, post, ": nothing yet\n\nid: 1\n"),                                                                // disconnected before the first event
		streams(t, post, event("1", started)+": alive\n\nid: 2\r\ndata: "+step+"\r\n\r\n"+"id: 3\ndata: "+finished), // disconnected inside a frame
		streams(t, resume+" 2", "id: 3\ndata: "+finished+"\n"),                                                      // disconnected before the frame's blank line
		streams(t, resume+" 2", event("3", finished)+event("4", started)),
	)
	var pauses int
	c := s.client(t, client.Config{OnRetry: func(error, time.Duration) { pauses++ }})
	got, err := read(c.Run(t.Context(), "demo", input))
	if want := []string{"1 RUN_STARTED", "2 STEP_STARTED", "3 RUN_FINISHED"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if pauses != 4 {
		t.Errorf("it paused %d times, want 4", pauses)
	}
}

// TestPreludeOfThreadIsReadOnce: events before the first cursor arrive again after a
// disconnect. The client shows them once.
func TestPreludeOfThreadIsReadOnce(t *testing.T) {
	t.Parallel()
	const first = "GET /v1/threads/t1/events?follow=false&protocolVersion=1.0"
	s := serve(t,
		streams(t, first, "data: "+started+"\n\ndata: "+step+"\n\n"),
		streams(t, first, "data: "+started+"\n\n"+event("2", step)+event("3", finished)+event("4", started)+event("5", finished)),
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "follow=false" || r.Header.Get("Last-Event-ID") != "5" {
				t.Errorf("request = %s after %q, want follow=false after 5", r.URL, r.Header.Get("Last-Event-ID"))
			}
			w.WriteHeader(http.StatusNoContent)
		},
	)
	got, err := read(s.client(t, client.Config{}).Follow(t.Context(), "t1", client.FollowOptions{Once: true}))
	want := []string{" RUN_STARTED", "2 STEP_STARTED", "3 RUN_FINISHED", "4 RUN_STARTED", "5 RUN_FINISHED"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRefusalsEndStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, streams(t, post, event("1", started)), refusal(http.StatusGone, "log_replaced", ""))
	got, err := read(s.client(t, client.Config{}).Run(t.Context(), "demo", input))
	var p *client.Problem
	if len(got) != 1 || !errors.As(err, &p) || p.Status != http.StatusGone || client.Code(err) != "log_replaced" || p.Detail != "so it is" {
		t.Errorf("got %q, %v, want one event and log_replaced", got, err)
	}
	if !strings.Contains(string(p.JSON), `"new":1`) {
		t.Errorf("JSON of the problem = %s, want its further members", p.JSON)
	}
}

// TestSilenceReconnects: a silent connection counts as broken, whatever the network reports.
func TestSilenceReconnects(t *testing.T) {
	t.Parallel()
	s := serve(t,
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, event("1", started))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		streams(t, resume+" 1", event("2", finished)),
	)
	got, err := read(s.client(t, client.Config{IdleTimeout: 500 * time.Millisecond}).Run(t.Context(), "demo", input))
	if err != nil || len(got) != 2 {
		t.Errorf("got %q, %v, want two events", got, err)
	}
}

func TestReadersStop(t *testing.T) {
	t.Parallel()
	hangs := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, event("1", started))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	s := serve(t, hangs, hangs)
	c := s.client(t, client.Config{})
	for e, err := range c.Run(t.Context(), "demo", input) {
		if err != nil || e.Cursor != "1" {
			t.Errorf("cursor of the first event = %q (%v), want 1", e.Cursor, err)
		}
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	left := errors.New("left")
	var err error
	for _, err = range c.Run(ctx, "demo", input) {
		cancel(left)
	}
	if !errors.Is(err, left) {
		t.Errorf("it ended with %v, want the context's cause", err)
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1" // a port that no other test may be given
	c, err := client.New(client.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	var unreachable *client.UnreachableError
	if _, err := read(c.Run(t.Context(), "demo", input)); !errors.As(err, &unreachable) || unreachable.URL != address {
		t.Errorf("got %v, want an unreachable server", err)
	}
	s := serve(t, streams(t, post, event("1", started)), refusal(http.StatusServiceUnavailable, "unavailable", "2"))
	impatient := s.client(t, client.Config{RetryWindow: time.Second})
	if got, err := read(impatient.Run(t.Context(), "demo", input)); len(got) != 1 || !errors.As(err, &unreachable) || client.Code(err) != "unavailable" {
		t.Errorf("stream of a server that is away: got %q, %v, want one event and unavailable", got, err)
	}
}

func TestInvalidEvents(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":      "id: 1\ndata: {\n\n",
		"wrong member": event("1", `{"type":"STEP_STARTED","stepName":7}`),
	} {
		var frame *client.FrameError
		s := serve(t, streams(t, post, text))
		if got, err := read(s.client(t, client.Config{}).Run(t.Context(), "demo", input)); len(got) != 0 || !errors.As(err, &frame) {
			t.Errorf("%s: got %q, %v, want a frame error", name, got, err)
		}
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := read(s.client(t, client.Config{}).Run(t.Context(), "demo", input)); err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("page in place of a stream: got %v, want an error with its type", err)
	}
}
