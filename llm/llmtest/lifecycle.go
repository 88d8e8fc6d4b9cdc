package llmtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
)

// testLife checks how calls end early, by cancel or break, and that calls share no state.
func testLife(t *testing.T, p Provider) {
	t.Run("cancel in the stream", func(t *testing.T) {
		t.Parallel()
		s, closed := stalling(t, p, func(e Encoder) []string { return []string{e.Begin(), e.Text(`"Hi"`)} })
		testCancel(t, s, closed)
	})
	t.Run("cancel in a flood", func(t *testing.T) {
		t.Parallel()
		s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
			e := p.NewEncoder()
			events(w, e.Begin())
			burst := strings.Repeat(e.Text(`"Hi "`), 500)
			for r.Context().Err() == nil {
				events(w, burst)
			}
		})
		testCancel(t, s, nil)
	})
	t.Run("cancel before the headers", func(t *testing.T) {
		t.Parallel()
		testCancelBeforeHeaders(t, p)
	})
	t.Run("cancel before the call", func(t *testing.T) {
		t.Parallel()
		s := play(t, p, func(e Encoder) []string {
			return []string{e.Begin(), e.Finish(llm.FinishStop, llm.Usage{})}
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errCancel)
		if err := Stream(t, ctx, s.model, request()).Err; !errors.Is(err, errCancel) {
			t.Errorf("stream ended with %v, want the cause of ctx", err)
		}
		if n := s.requests.Load(); n != 0 {
			t.Errorf("%d requests were sent for a call that was canceled before", n)
		}
	})
	t.Run("break closes the connection", func(t *testing.T) {
		t.Parallel()
		s, closed := stalling(t, p, func(e Encoder) []string { return []string{e.Begin(), e.Text(`"Hi"`)} })
		for _, err := range s.model.Stream(t.Context(), request()) {
			if err != nil {
				t.Fatalf("stream failed: %v", err)
			}
			break
		}
		await(t, closed, "the connection to be closed")
	})
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		// Port 1 is not served, so the connection is refused and no request is sent.
		model := p.New(Endpoint{BaseURL: "http://127.0.0.1:1", APIKey: apiKey, Client: &http.Client{Transport: &http.Transport{}}})
		failure := asError(t, Stream(t, t.Context(), model, request()).Err)
		if failure.Code != llm.CodeUnavailable || !failure.Retryable() {
			t.Errorf("failed with %v, want %q, retryable", failure, llm.CodeUnavailable)
		}
	})
	t.Run("ranges are calls of their own", func(t *testing.T) {
		t.Parallel()
		testRanges(t, p)
	})
}

// maxLate is the maximum number of chunks after a cancel: those of one event.
const maxLate = 4

// errCancel is the cause of a cancelled ctx.
var errCancel = errors.New("the user has had enough")

// testCancel cancels after the first chunk. It checks that the stream ends in time with the cause.
// If closed is not nil, it also waits until the server notices the closed connection.
func testCancel(t *testing.T, s *server, closed <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	var canceled time.Time
	late := 0
	for _, err := range s.model.Stream(ctx, request()) {
		last = err
		switch {
		case err != nil:
		case canceled.IsZero():
			canceled = time.Now()
			cancel(errCancel)
		default:
			late++
		}
	}
	if late > maxLate {
		t.Errorf("%d chunks came after the cancel: what is buffered is not to be delivered", late)
	}
	if !errors.Is(last, errCancel) {
		t.Fatalf("stream ended with %v, want the cause of ctx", last)
	}
	if took := time.Since(canceled); took > atOnce {
		t.Errorf("stream ended %v after the cancel", took)
	}
	if closed != nil {
		await(t, closed, "the connection to be closed")
	}
}

// testCancelBeforeHeaders cancels a call while it waits for the response headers.
func testCancelBeforeHeaders(t *testing.T, p Provider) {
	arrived, closed := make(chan struct{}), make(chan struct{})
	s := serve(t, p, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(closed)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range s.model.Stream(ctx, request()) {
			last = err
		}
		ended <- last
	}()
	await(t, arrived, "the request")
	cancel(errCancel)
	select {
	case err := <-ended:
		if !errors.Is(err, errCancel) {
			t.Errorf("stream ended with %v, want the cause of ctx", err)
		}
	case <-time.After(atOnce):
		t.Errorf("stream did not end within %v of the cancel", atOnce)
	}
	await(t, closed, "the connection to be closed")
}

// testRanges ranges over one sequence several times concurrently. Each range must be a separate
// call.
func testRanges(t *testing.T, p Provider) {
	s := play(t, p, func(e Encoder) []string {
		return []string{e.Begin(), e.Text(`"One "`), e.ToolCall(0, "a", "lookup"), e.Arguments(0, `"{}"`), e.Finish(llm.FinishToolCalls, llm.Usage{})}
	})
	const ranges = 8
	sequence := s.model.Stream(t.Context(), request())
	var group sync.WaitGroup
	for range ranges {
		group.Go(func() {
			var collector llm.Collector
			for chunk, err := range sequence {
				if err != nil {
					t.Errorf("stream failed: %v", err)
					return
				}
				collector.Add(chunk)
			}
			if message := collector.Message(); message.Text() != "One " || len(message.ToolCalls) != 1 {
				t.Errorf("message is %+v", message)
			}
		})
	}
	group.Wait()
	if n := s.requests.Load(); n != ranges {
		t.Errorf("%d ranges sent %d requests", ranges, n)
	}
}

// stalling starts a server that sends the events and then keeps the connection open. The channel is
// closed when the client closes the connection.
func stalling(t *testing.T, p Provider, write func(Encoder) []string) (*server, <-chan struct{}) {
	t.Helper()
	closed := make(chan struct{})
	return serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		events(w, write(p.NewEncoder())...)
		<-r.Context().Done()
		close(closed)
	}), closed
}

// await waits until the channel is closed, or fails the test.
func await(t *testing.T, happened <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
