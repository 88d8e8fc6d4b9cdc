package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/trace"
)

const traceOfR1 = "/v1/threads/t/runs/r1/trace"

// TestTraceOfRun: the trace of a run is one document, or a stream that shows each change until the
// run ends.
func TestTraceOfRun(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodGet, traceOfR1, "").wantRefusal(t, "trace before the run", http.StatusNotFound, "unknown_run", "")
	goOn := node.emitHalfMessages()
	node.startRun("r1")
	live := node.watch(traceOfR1, "Accept", "text/event-stream")
	first := live.until(`"type":"trace"`)
	if !strings.Contains(first, `"status":"running"`) {
		t.Errorf("first event = %s, want the trace of a run that is running", first)
	}
	goOn("r1")
	rest := live.until(`"type":"end"`)
	var ended trace.Trace
	if err := json.Unmarshal([]byte(node.do(http.MethodGet, traceOfR1, "").body), &ended); err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, s := range ended.Spans {
		kinds += string(s.Kind) + " " + string(s.Status) + ", "
	}
	wantEqual(t, "spans", kinds, "run finished, turn finished, model finished, ")
	wantEqual(t, "outcome", ended.Outcome, "success")
	spans := map[string]trace.Span{}
	for line := range strings.SplitSeq(first+rest, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Trace trace.Trace
			Spans []trace.Span
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		for _, s := range append(e.Trace.Spans, e.Spans...) {
			spans[s.ID] = s
		}
	}
	for _, s := range ended.Spans {
		if diff := cmp.Diff(s, spans[s.ID]); diff != "" {
			t.Errorf("span %s of the stream (-want +got):\n%s", s.Name, diff)
		}
	}
	again := node.do(http.MethodGet, traceOfR1, "", "Accept", "text/event-stream")
	if n := strings.Count(again.body, "data: "); n != 2 || !strings.Contains(again.body, `"type":"end"`) {
		t.Errorf("stream of a run that has ended = %s, want the trace and the end", again.body)
	}
}

// TestTraceNeedsAccess: only readers of the thread read a trace, and a reader whose share is removed
// gets no further span.
func TestTraceNeedsAccess(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.do(http.MethodGet, traceOfR1, "", headersOf("bob")...).mustStatus(t, "trace for bob", http.StatusForbidden)
	f.do(http.MethodGet, traceOfR1, "", beta...).mustStatus(t, "trace for another tenant", http.StatusNotFound)
	f.do(http.MethodGet, traceOfR1, "", alpha...).mustStatus(t, "trace for ann", http.StatusOK)
	f.share(t, `[{"subject":"bob","access":"read"}]`)
	run := stream.Run{Thread: stream.Thread{Tenant: "alpha", ID: "t"}, ID: "r9"}
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e9"}
	if _, err := f.snapshots.OpenRun(f.ctx(), place, stream.Opening{RunID: "r9", Agent: "a", Execution: "e9", Continues: "r1"}); err != nil {
		t.Fatal(err)
	}
	live := f.watch("/v1/threads/t/runs/r9/trace", append(headersOf("bob"), "Accept", "text/event-stream")...)
	live.until(`"type":"trace"`)
	f.share(t, `[]`)
	f.end(place)
	for live.body.Scan() {
		if strings.HasPrefix(live.body.Text(), "data: ") {
			t.Errorf("event after the share was removed = %s, want none", live.body.Text())
		}
	}
}

// TestTracesHaveTurns: a trace is read in a turn of the tenant, as the past of a stream is. Without a
// free turn it waits.
func TestTracesHaveTurns(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.postMessage("t", "r1")
	var ends []func()
	for range 8 { // all turns of the tenant
		end, err := node.server.TakeTurn(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, node.http.URL+traceOfR1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := node.http.Client().Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("trace without a turn: got %v and error %v, want that it waits", resp, err)
	}
	for _, end := range ends {
		end()
	}
	node.do(http.MethodGet, traceOfR1, "").mustStatus(t, "trace with a turn", http.StatusOK)
}

// TestTimestampsOfEvents: events have the times of their records, on pages and in streams, if the
// reader asks for them.
func TestTimestampsOfEvents(t *testing.T) {
	t.Parallel()
	node := setup(t)
	var run stream.Run
	node.temporal.start = func(in runs.Input) error {
		p := node.begin(in, "e1")
		run = p.Run
		node.end(p)
		return nil
	}
	node.post(inputOf("r1", "hello")).mustStatus(t, "run", http.StatusOK)
	end, err := node.log.TerminalRecord(node.ctx(), run)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`"timestamp":%d}`, end.Time.UnixMilli())
	for _, path := range []string{eventsOfR1 + "?", "/v1/threads/t/events?follow=false&"} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			timed := node.do(http.MethodGet, path+"timestamps=true", "", "Accept", accept)
			if events, times := strings.Count(timed.body, `"type":"`), strings.Count(timed.body, `"timestamp":`); events < 2 || times < 2 || !strings.Contains(timed.body, want) {
				t.Errorf("%s as %s = %s, want a timestamp in each event, and %s", path, accept, timed.body, want)
			}
			if plain := node.do(http.MethodGet, path+"timestamps=false", "", "Accept", accept); strings.Contains(plain.body, "timestamp") {
				t.Errorf("%s as %s without timestamps = %s, want none", path, accept, plain.body)
			}
		}
	}
	for _, frame := range []map[string]any{{"runId": "r1"}, {"follow": false}} {
		for _, timed := range []bool{true, false} {
			maps.Copy(frame, map[string]any{"type": "subscribe", "id": "1", "threadId": "t", "timestamps": timed})
			c := node.dial()
			c.send(frame)
			c.want("ack", "1")
			_, lines := c.until("1", "end")
			events := strings.Join(lines, "\n")
			if strings.Contains(events, want) != timed {
				t.Errorf("events of %v = %s", frame, events)
			}
		}
	}
}
