package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/transport/egress"
)

// Parts of streams.
const (
	started  = `data: {"type":"RUN_STARTED","threadId":"t","runId":"requested","protocolVersion":"1.0"}` + "\n\n"
	finished = `data: {"type":"RUN_FINISHED","threadId":"t","runId":"requested"}` + "\n\n"
	step     = `data: {"type":"STEP_STARTED","stepName":"s"}` + "\n\n"
)

// failed returns the *Error of a call.
func failed(t *testing.T, got received) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](got.err)
	if !ok {
		t.Fatalf("error = %v, want an *Error", got.err)
	}
	return e
}

func TestRun(t *testing.T) {
	t.Parallel()
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		var in agui.RunAgentInput
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil || in.ProtocolVersion != agui.Version || in.RunID != "requested" {
			t.Errorf("input = %s (%v), want that of the call with a version", body, err)
		}
		for name, want := range map[string]string{
			"Accept": "text/event-stream", "Content-Type": "application/json", "Authorization": "Bearer x", "Last-Event-Id": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		_, _ = fmt.Fprint(events(w), ": hello\n\nid: 1\n"+started+"id: 2\n"+
			`data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hi","new":1}`+"\n\n"+finished)
	})
	got := run(t, url, Call{Header: http.Header{"authorization": {"Bearer x"}}})
	if got.err != nil {
		t.Fatal(got.err)
	}
	var list []string
	for _, e := range got.events {
		list = append(list, fmt.Sprintf("%s id=%s run=%s warnings=%d", e.EventType(), e.ID, e.RunID, len(e.Warnings)))
	}
	want := `RUN_STARTED id=1 run=requested warnings=0
TEXT_MESSAGE_START id=1 run=requested warnings=1
TEXT_MESSAGE_CONTENT id=2 run=requested warnings=0
TEXT_MESSAGE_END id=2 run=requested warnings=0
RUN_FINISHED id=2 run=requested warnings=0`
	if strings.Join(list, "\n") != want {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(list, "\n"), want)
	}
}

// TestEndOfTheRun: the iteration ends at the terminal event of the requested run, although the
// remote keeps its response open, and at the end of the response if the remote chooses run IDs.
func TestEndOfTheRun(t *testing.T) {
	t.Parallel()
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(events(w), strings.ReplaceAll(started+finished, "requested", "replayed")+started+finished)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	got := run(t, url, Call{})
	if got.err != nil || len(got.events) != 4 || got.events[0].RunID != "replayed" || got.events[3].RunID != "requested" {
		t.Errorf("replay: got %q, %v, want both runs", got.types(), got.err)
	}
	own := strings.TrimSuffix(strings.ReplaceAll(started+finished, "requested", "own"), "\n\n")
	if got := run(t, serve(t, own), Call{}); got.err != nil || len(got.events) != 2 {
		t.Errorf("own IDs, without an empty line at the end: got %q, %v, want the run", got.types(), got.err)
	}
	if got := run(t, serve(t, `data: {"type":"RUN_ERROR","message":"no"}`+"\n\n"), Call{}); got.err != nil || len(got.events) != 1 {
		t.Errorf("only RUN_ERROR: got %q, %v, want it", got.types(), got.err)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		header string // Retry-After
		want   Kind
		after  time.Duration
	}{
		{400, "", KindRejected, 0},
		{401, "", KindRejected, 0},
		{422, "5", KindRejected, 5 * time.Second},
		{429, "7", KindUnavailable, 7 * time.Second},
		{503, "soon", KindUnavailable, 0},
		{500, "", KindFailed, 0},
		{502, "3", KindFailed, 3 * time.Second},
		{304, "", KindRejected, 0},
	} {
		url := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, "key SECRET "+strings.Repeat("ä", maxExcerpt))
		})
		call := Call{Redact: func(s string) string { return strings.ReplaceAll(s, "SECRET", "[secret]") }}
		e := failed(t, run(t, url, call))
		if e.Kind != c.want || e.RetryAfter != c.after || e.Status != c.status || !e.Sent || e.Received {
			t.Errorf("status %d: got %+v, want %s after %s", c.status, e, c.want, c.after)
		}
		if c.status != 304 && (!strings.HasPrefix(e.Excerpt, "key [secret] ä") || len(e.Excerpt) > maxExcerpt || strings.Contains(e.Excerpt, "\uFFFD")) {
			t.Errorf("status %d: excerpt = %.40q… of %d bytes, want the redacted beginning", c.status, e.Excerpt, len(e.Excerpt))
		}
		if strings.Contains(e.Error(), "key") {
			t.Errorf("status %d: the error has the text of the response: %v", c.status, e)
		}
	}
}

func TestNoEventStream(t *testing.T) {
	t.Parallel()
	for _, mediaType := range []string{"", "text/html; charset=utf-8", "application/vnd.ag-ui.event+proto"} {
		url := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{mediaType}
			_, _ = fmt.Fprint(w, started+finished)
		})
		if e := failed(t, run(t, url, Call{})); e.Kind != KindNotEvents || e.Status != 200 || !e.Sent {
			t.Errorf("%q: got %+v, want no event stream", mediaType, e)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if e := failed(t, run(t, s.URL, Call{})); e.Kind != KindUnreachable || e.Sent {
		t.Errorf("closed port: got %+v, want that nothing was sent", e)
	}
	if e := failed(t, run(t, "http://agent.invalid/", Call{})); e.Kind != KindForbidden && e.Kind != KindUnreachable || e.Sent {
		t.Errorf("unknown host: got %+v, want that nothing was sent", e)
	}
	for _, url := range []string{"", "agent", "ftp://host/", "http:///path", "http://host/%zz"} {
		if e := failed(t, run(t, url, Call{})); e.Kind != KindInvalid || e.Sent {
			t.Errorf("URL %q: got %+v, want an invalid call", url, e)
		}
	}
	if e := failed(t, run(t, serve(t, ""), Call{Header: http.Header{"X": {"a\nb"}}})); e.Kind != KindInvalid || e.Sent {
		t.Errorf("header with a line break: got %+v, want an invalid call", e)
	}
}

func TestEgressRules(t *testing.T) {
	t.Parallel()
	url := serve(t, started+finished)
	for _, err := range NewClient(egress.Transport(egress.PublicOnly)).Run(t.Context(), Call{URL: url, Input: input}) {
		if e := failed(t, received{err: err}); e.Kind != KindForbidden || e.Sent {
			t.Errorf("private address: got %+v, want it forbidden", e)
		}
	}
	other := serveFunc(t, func(http.ResponseWriter, *http.Request) { t.Error("another host has received a request") })
	for status, location := range map[int]string{307: other, 302: "/agent", 303: "/agent"} {
		url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				t.Errorf("%d: the remote has received a %s", status, r.Method)
			}
			http.Redirect(w, r, location, status)
		})
		if e := failed(t, run(t, url, Call{})); e.Kind != KindForbidden || !e.Sent {
			t.Errorf("redirect %d to %s: got %+v, want it forbidden", status, location, e)
		}
	}
	url = serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/agent" {
			http.Redirect(w, r, "/agent/", http.StatusTemporaryRedirect)
			return
		}
		if body, _ := io.ReadAll(r.Body); len(body) == 0 || r.Method != http.MethodPost {
			t.Errorf("redirected request: %s with %d bytes, want the input", r.Method, len(body))
		}
		_, _ = fmt.Fprint(events(w), started+finished)
	})
	if got := run(t, url, Call{}); got.err != nil {
		t.Errorf("redirect 307 on the host: %v, want the run", got.err)
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	reset := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(events(w), "id: 1\n"+started+step+`data: {"type":"STEP_FINISHED"`)
		_ = http.NewResponseController(w).Flush()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
	early := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	for _, c := range []struct {
		name, url string
		want      Kind
		events    int
		id        string
	}{
		{"reset", reset, KindBroken, 2, "1"},
		{"no answer", early, KindBroken, 0, ""},
		{"no terminal event", serve(t, "id: 1\n"+started+step), KindTruncated, 2, "1"},
		{"no event", serve(t, ""), KindTruncated, 0, ""},
		{"cut event", serve(t, started+`data: {"type":"RUN_FINISHED","threadId":"t"`), KindTruncated, 1, ""},
	} {
		got := run(t, c.url, Call{})
		if e := failed(t, got); e.Kind != c.want || len(got.events) != c.events || e.LastEventID != c.id || e.Received != (c.events > 0) || !e.Sent {
			t.Errorf("%s: got %d events, %+v, want %d, %s", c.name, len(got.events), e, c.events, c.want)
		}
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	const limit = 200 * time.Millisecond
	mute := serveFunc(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice the end of the connection
		<-r.Context().Done()
	})
	if e := failed(t, run(t, mute, Call{Limits: Limits{Silence: limit}})); e.Kind != KindSilent || !e.Sent || e.Received {
		t.Errorf("no answer: got %+v, want silence", e)
	}
	stalled := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(events(w), "id: 1\n"+started)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	if e := failed(t, run(t, stalled, Call{Limits: Limits{Silence: limit}})); e.Kind != KindSilent || !e.Received || e.LastEventID != "1" {
		t.Errorf("stalled stream: got %+v, want silence", e)
	}
	// Comments count as life: in total they last longer than the limit.
	commenting := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(events(w), started)
		ticks := time.NewTicker(limit / 10)
		defer ticks.Stop()
		for range 15 {
			<-ticks.C
			_, _ = fmt.Fprint(w, ":\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = fmt.Fprint(w, finished)
	})
	if got := run(t, commenting, Call{Limits: Limits{Silence: limit}}); got.err != nil {
		t.Errorf("comments: %v, want the run", got.err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	large := `data: {"type":"CUSTOM","name":"n","value":"` + strings.Repeat("x", 1000) + `"}` + "\n\n"
	url := serve(t, started+strings.Repeat(large, 5)+finished)
	for name, limits := range map[string]Limits{
		"events":      {Events: 6},
		"event bytes": {EventBytes: 1000},
		"run bytes":   {RunBytes: 3000},
	} {
		if e := failed(t, run(t, url, Call{Limits: limits})); e.Kind != KindTooLarge || !e.Received {
			t.Errorf("%s: got %+v, want the bound exceeded", name, e)
		}
	}
	if got := run(t, url, Call{Limits: Limits{Events: 7, EventBytes: 1100, RunBytes: 6000}}); got.err != nil {
		t.Errorf("within the bounds: %v", got.err)
	}
}

func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]agui.Rule{
		step: agui.RuleFirstEvent,
		started + `data: {"type":"TEXT_MESSAGE_END","messageId":"m"}` + "\n\n": agui.RuleNotOpen,
		started + step + finished:                          agui.RuleOpenAtFinish,
		started + `data: {"type":"STEP_STARTED"}` + "\n\n": RuleMalformed,
		started + "data: [DONE]\n\n":                       RuleMalformed,
		started + "data\n\n":                               RuleMalformed,
		started + `data: {"type":"TEXT_MESSAGE_CHUNK","delta":"secret"}` + "\n\n": agui.RuleFirstChunk,
	} {
		e := failed(t, run(t, serve(t, stream), Call{}))
		if broken, ok := errors.AsType[*ProtocolError](e); !ok || broken.Rule != want || e.Kind != KindProtocol {
			t.Errorf("%q: got %v, want the rule %s", stream, e, want)
		}
		if strings.Contains(e.Error(), "secret") {
			t.Errorf("%q: the error has content: %v", stream, e)
		}
	}
}

func TestResumedRun(t *testing.T) {
	t.Parallel()
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Last-Event-ID"); got != "7" {
			t.Errorf("Last-Event-ID = %q, want 7", got)
		}
		_, _ = fmt.Fprint(events(w), `data: {"type":"TEXT_MESSAGE_END","messageId":"m"}`+"\n\n"+finished)
	})
	if got := run(t, url, Call{LastEventID: "7"}); got.err != nil || len(got.events) != 2 || got.events[0].ID != "7" {
		t.Errorf("got %q, %v, want the rest of the run", got.types(), got.err)
	}
	if e := failed(t, run(t, serve(t, ""), Call{LastEventID: "7"})); e.Kind != KindTruncated || e.LastEventID != "7" {
		t.Errorf("nothing more: got %+v, want a truncated stream with the ID of the call", e)
	}
}

func TestEndOfContext(t *testing.T) {
	t.Parallel()
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(events(w), started)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	cause := errors.New("cancelled by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for _, err := range NewClient(egress.Transport(egress.AnyNetwork)).Run(ctx, Call{URL: url, Input: input}) {
		cancel(cause)
		last = err
	}
	if !errors.Is(last, cause) {
		t.Errorf("error = %v, want the cause of the context", last)
	}
}

// TestBreak: a consumer that stops reading ends the request.
func TestBreak(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		_, _ = fmt.Fprint(events(w), started)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for _, err := range NewClient(egress.Transport(egress.AnyNetwork)).Run(t.Context(), Call{URL: url, Input: input}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-ended
}
