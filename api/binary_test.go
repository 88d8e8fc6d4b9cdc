package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/protobuf"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
)

// postAccepting posts an input with the headers of content negotiation.
func (n *node) postAccepting(in agui.RunAgentInput, header ...string) answer {
	n.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.do(http.MethodPost, "/v1/agents/a/runs", string(body), header...)
}

// events returns the events of a response in either encoding.
func (a answer) events(t *testing.T) []agui.Event {
	t.Helper()
	var events []agui.Event
	if a.header.Get("Content-Type") != protobuf.MediaType {
		for _, line := range strings.Split(a.body, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				e, err := agui.Decode([]byte(data))
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, e)
			}
		}
		return events
	}
	frames := protobuf.NewReader(strings.NewReader(a.body))
	for {
		e, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

func TestBinaryEventsEqualTextEvents(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	text := node.post(inputOf("r1", "hello"))
	binary := node.postAccepting(inputOf("r1", "hello"), "Accept", protobuf.MediaType)
	got := binary.header.Get("Content-Type")
	mustEqual(t, "header Content-Type", got, "application/vnd.ag-ui.event+proto")
	binary.mustStatus(t, "status", http.StatusOK)
	if diff := cmp.Diff(text.events(t), binary.events(t)); diff != "" || len(binary.events(t)) != 2 {
		t.Errorf("got %d events, want 2; (-text +binary):\n%s", len(binary.events(t)), diff)
	}
	const path = "/v1/threads/t/runs/r1/events"
	if again := node.do(http.MethodGet, path, "", "Accept", protobuf.MediaType); again.body != binary.body {
		t.Errorf("%d %q, want %q", again.status, again.body, binary.body)
	}
	rest := node.do(http.MethodGet, path, "", "Accept", protobuf.MediaType, "Last-Event-ID", cursors(text.body)[0])
	if diff := cmp.Diff(text.events(t)[1:], rest.events(t)); diff != "" || rest.header.Get("Content-Type") != protobuf.MediaType {
		t.Errorf("after a cursor (-want +got):\n%s", diff)
	}
	end := node.do(http.MethodGet, path, "", "Accept", protobuf.MediaType, "Last-Event-ID", cursors(text.body)[1])
	wantEqual(t, "status of a reconnect after the end", end.status, http.StatusNoContent)
	bad := node.do(http.MethodPost, "/v1/agents/a/runs", "{", "Accept", protobuf.MediaType)
	wantEqual(t, "problem code", bad.problem.Code, "invalid_input")
}

func TestBinaryEncodingIsNegotiated(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	const sse = "text/event-stream"
	for accept, want := range map[string]string{
		"":                                  sse,
		"*/*":                               sse,
		"application/*":                     sse,
		sse:                                 sse,
		"application/json":                  sse,
		protobuf.MediaType:                  protobuf.MediaType,
		"Application/vnd.AG-UI.event+proto": protobuf.MediaType,
		sse + ", " + protobuf.MediaType + ";q=0.001":   protobuf.MediaType,
		protobuf.MediaType + "; q=0, */*":              sse,
		protobuf.MediaType + ";q=0.000":                sse,
		protobuf.MediaType + "; q=high":                protobuf.MediaType,
		"text/;;, " + protobuf.MediaType:               protobuf.MediaType,
		"application/vnd.ag-ui.event+proto-of-another": sse,
	} {
		got := node.postAccepting(inputOf("r1", "hello"), "Accept", accept)
		if media := got.header.Get("Content-Type"); media != want || len(got.events(t)) != 2 {
			t.Errorf("Accept %s: got %s, want %s", accept, media, want)
		}
	}
	old := inputOf("r2", "hello")
	old.ProtocolVersion = ""
	if got := node.postAccepting(old, "Accept", protobuf.MediaType); got.header.Get("Content-Type") != sse {
		t.Errorf("a client older than 1.0: header Content-Type = %q, want %q", got.header.Get("Content-Type"), sse)
	}
	if got := node.do(http.MethodGet, "/v1/threads/t/runs/r1/events?protocolVersion=", "", "Accept", protobuf.MediaType); got.header.Get("Content-Type") != sse {
		t.Errorf("a reader older than 1.0: header Content-Type = %q, want %q", got.header.Get("Content-Type"), sse)
	}
}

// output collects log records.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// TestStrictModeEndsInvalidStream: a stream that would violate the protocol ends instead, and the
// error is logged.
func TestStrictModeEndsInvalidStream(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"text/event-stream", protobuf.MediaType} {
		var logged output
		node := setup(t, func(c *api.Config) {
			c.Strict, c.Logger = true, slog.New(slog.NewTextHandler(&logged, nil))
		})
		node.completeRuns()
		good := node.postAccepting(inputOf("good", "hello"), "Accept", accept)
		wantEqual(t, accept+": number of events", len(good.events(t)), 2)
		wantEqual(t, accept+": log of a valid run", logged.String(), "")
		node.temporal.start = func(in runs.Input) error {
			p := node.begin(in, "e")
			_, _, err := node.log.Seal(node.ctx(), p, &agui.RunFinished{ThreadID: p.Run.Thread.ID, RunID: "another"})
			return err
		}
		bad := node.postAccepting(inputOf("bad", "hello"), "Accept", accept)
		if got := bad.events(t); len(got) != 1 || got[0].EventType() != agui.EventRunStarted {
			t.Errorf("%s: invalid run: got %s, want only RUN_STARTED", accept, bad.body)
		}
		if got := logged.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "RUN_FINISHED another") {
			t.Errorf("%s: log of an invalid run: got %s, want one error that names the event", accept, got)
		}
		if accept != protobuf.MediaType { // which has no cursors
			resumed := node.do(http.MethodGet, "/v1/threads/t/runs/good/events", "", "Last-Event-ID", cursors(good.body)[0])
			wantEqual(t, "number of events after the first cursor", len(resumed.events(t)), 1)
		}
	}
}
