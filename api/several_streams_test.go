package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streamReader reads the frames of a POST /v1/streams.
type streamReader struct {
	t     *testing.T
	lines *bufio.Scanner
}

// readStreams sends a POST /v1/streams, whose response ends with the test.
func (n *node) readStreams(streams ...map[string]any) *streamReader {
	n.t.Helper()
	body, err := json.Marshal(map[string]any{"streams": streams})
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodPost, n.http.URL+"/v1/streams", bytes.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		n.t.Fatalf("several streams: got %d %s, want %d as text/event-stream", resp.StatusCode, kind, http.StatusOK)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	return &streamReader{n.t, lines}
}

// next returns the next frame, and false at the end of the response.
func (r *streamReader) next() (f wsFrame, ok bool) {
	r.t.Helper()
	for r.lines.Scan() {
		data, isData := strings.CutPrefix(r.lines.Text(), "data: ")
		if !isData {
			continue
		}
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			r.t.Fatalf("%v: %s", err, data)
		}
		return f, true
	}
	return f, false
}

// until reads frames until the condition holds, and returns the events of each stream.
func (r *streamReader) until(condition func(wsFrame) bool) map[string][]string {
	r.t.Helper()
	events := map[string][]string{}
	for {
		f, ok := r.next()
		if !ok {
			r.t.Fatalf("the response has ended after %v", events)
		}
		if f.Type == "event" {
			events[f.ID] = append(events[f.ID], f.line())
		}
		if condition(f) {
			return events
		}
	}
}

// TestSeveralStreams: one response has the events of two threads and of a run, which equal those of
// their own streams. An unknown run ends only its stream, and the response ends after the last
// stream.
func TestSeveralStreams(t *testing.T) {
	t.Parallel()
	node := setup(t)
	outputs := node.captureOutputs()
	for _, thread := range []string{"t1", "t2"} {
		in := inputOf("r", "hello")
		in.ThreadID = thread
		c := node.dial()
		c.send(runFrame("1", in))
		c.want("ack", "1")
	}
	first, second := outputs.next(node), outputs.next(node)
	first.say("one")
	page := node.do(http.MethodGet, "/v1/threads/t1/events?protocolVersion=1.0", "", "Accept", "application/json")
	var known struct{ NextCursor string }
	if err := json.Unmarshal([]byte(page.body), &known); err != nil {
		t.Fatal(err)
	}
	r := node.readStreams(
		map[string]any{"id": "a", "threadId": "t1", "follow": false, "after": known.NextCursor},
		map[string]any{"id": "b", "threadId": "t2", "runId": "r"},
		map[string]any{"id": "c", "threadId": "t2", "runId": "unknown"})
	acknowledged := map[string]bool{}
	r.until(func(f wsFrame) bool {
		acknowledged[f.ID] = true
		if f.ID == "c" {
			wantEqual(t, "refusal of an unknown run", f.Type+" "+f.Code, "error unknown_run")
		}
		return len(acknowledged) == 3
	})
	second.say("two")
	first.say("three")
	second.end()
	first.end()
	ended := map[string]bool{}
	events := r.until(func(f wsFrame) bool {
		if f.Type == "end" {
			ended[f.ID] = true
		}
		return len(ended) == 2
	})
	if f, ok := r.next(); ok {
		t.Errorf("after the end of all streams: %+v", f)
	}
	for id, path := range map[string]string{"a": "/v1/threads/t1/runs/r/events?after=" + known.NextCursor, "b": "/v1/threads/t2/runs/r/events"} {
		want := sseLines(node.do(http.MethodGet, path, "").body)
		got := events[id]
		if id == "b" { // its RUN_STARTED came before the last acknowledgement
			want, got = want[len(want)-3:], got[max(0, len(got)-3):]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-own stream +shared response):\n%s", path, diff)
		}
	}
}

// TestSeveralStreamsAreValidated: a request without streams, with too many, or with IDs that are
// missing or equal is refused as a whole.
func TestSeveralStreamsAreValidated(t *testing.T) {
	t.Parallel()
	node := setup(t)
	one := `{"id":"a","threadId":"t"}`
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"%d","threadId":"t"}`, i)
	}
	for body, pointer := range map[string]string{
		`{}`:             "/streams",
		`{"streams":[]}`: "/streams",
		`{"streams":[` + strings.Join(many, ",") + `]}`: "/streams",
		`{"streams":[` + one + `,{"threadId":"t"}]}`:    "/streams/1/id",
		`{"streams":[` + one + `,` + one + `]}`:         "/streams/1/id",
		`{"streams":[{"id":"a","thread":"t"}]}`:         "/thread",
	} {
		a := node.do(http.MethodPost, "/v1/streams", body)
		a.wantStatus(t, body, http.StatusBadRequest)
		wantEqual(t, body+": pointer", a.problem.Pointer, pointer)
	}
}

// TestSeveralStreamsEndWithServer: when the server drains, each stream ends with the code
// interrupted, and new requests are refused.
func TestSeveralStreamsEndWithServer(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	r := node.readStreams(map[string]any{"id": "a", "threadId": "t"}, map[string]any{"id": "b", "threadId": "t"})
	acknowledged := 0
	r.until(func(f wsFrame) bool {
		if f.Type == "ack" {
			acknowledged++
		}
		return acknowledged == 2
	})
	node.server.Drain()
	ended := map[string]bool{}
	r.until(func(f wsFrame) bool {
		if f.Type == "error" {
			wantEqual(t, "code of "+f.ID, f.Code, "interrupted")
			ended[f.ID] = true
		}
		return len(ended) == 2
	})
	node.do(http.MethodPost, "/v1/streams", `{"streams":[{"id":"a","threadId":"t"}]}`).wantStatus(t, "a new request", http.StatusServiceUnavailable)
}
