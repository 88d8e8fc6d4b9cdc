package runs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/stream/trace"
)

// clerk calls a tool whose server fails twice, speaks at length, and makes a call that a person
// approves. %[1]s is the URL of the server, %[2]s the mark of content.
const clerk = `name: clerk
model: scripted/clerk
tools: [fetch, calculate]
approvals:
  - {tools: [calculate]}
---
kind: tool
name: fetch
description: Fetches.
parameters: {type: object}
http: {method: GET, url: "%[1]s"}
idempotent: true
---
kind: script
name: clerk
turns:
  - steps:
      - calls: [{tool: fetch, arguments: {}}]
      - say: "%[2]s %[3]s"
        calls: [{tool: calculate, arguments: {expression: "6*7"}}]
      - say: "%[2]s all done"
`

// TestTraceOfRun: the trace of a run has what clients were not shown: the attempts of a tool that
// failed twice, and what a killed process had streamed. Its times are in order, the live trace ends
// with the same spans, and the run after an approval has the call that it allows.
func TestTraceOfRun(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(kit.Marked("busy")))
			return
		}
		_, _ = w.Write([]byte(kit.Marked("fetched")))
	}))
	t.Cleanup(server.Close)
	p := kit.SetupWith(t, fmt.Sprintf(clerk, server.URL, kit.Mark, strings.Repeat("on and ", 100)))
	in := kit.NewInput(kit.Marked("Fetch and calculate."))
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	f.UntilContent(t, 5)
	p.Restart(t)
	path := "/v1/threads/" + in.ThreadID + "/runs/" + in.RunID + "/trace"
	live := followTrace(t, p, path)
	f.Finish(t)

	var run trace.Trace
	p.GetJSON(t, path, &run)
	want := `run clerk waiting
  turn turn 1 finished
    model scripted/clerk finished
    tool fetch finished
      1 failed tool_unavailable
      2 failed tool_unavailable
      3 finished
  turn turn 2 waiting
    model scripted/clerk finished
      1 failed worker_lost
      2 finished
    interrupt calculate waiting
`
	if diff := cmp.Diff(want, traceText(t, &run)); diff != "" {
		t.Fatalf("trace (-want +got):\n%s", diff)
	}
	if w := run.Spans[5].Attempts[0].Withdrawn; w == nil || !strings.HasPrefix(w.Text, kit.Mark+" on and") {
		t.Errorf("withdrawn content of the killed attempt = %+v, want its text", w)
	}
	if e := run.Spans[3].Attempts[0].Error; !strings.Contains(e.Message, "503") || e.Hint == "" {
		t.Errorf("error of the first attempt = %+v, want the status 503 and a hint", e)
	}
	if diff := cmp.Diff(run.Spans, <-live); diff != "" {
		t.Errorf("spans of the live trace (-JSON +live):\n%s", diff)
	}

	f.Approve(t)
	var next trace.Trace
	for _, e := range f.Events {
		if e.Type == "RUN_STARTED" && e.Member("runId") != in.RunID {
			p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+e.Member("runId")+"/trace", &next)
		}
	}
	want = `run clerk finished
  tool calculate finished
  turn turn 1 finished
    model scripted/clerk finished
`
	if diff := cmp.Diff(want, traceText(t, &next)); diff != "" {
		t.Errorf("trace of the run after the approval (-want +got):\n%s", diff)
	}
	if next.Continues != in.RunID || next.Spans[1].Decision != "approve" {
		t.Errorf("run after the approval continues %q with the decision %q, want %q and approve", next.Continues, next.Spans[1].Decision, in.RunID)
	}
	for run.Status == trace.StatusWaiting { // the audit follows the decision
		run = trace.Trace{}
		p.GetJSON(t, path, &run)
	}
	if s := run.Spans[6]; s.Decision != "approve" || s.EndedAt == nil || run.Status != trace.StatusFinished {
		t.Errorf("interrupt after the approval = %+v in a run that is %s, want approve, an end, and finished", s, run.Status)
	}
}

// followTrace reads the stream of a trace to its end. The channel receives its spans, in the order
// in which they began.
func followTrace(t *testing.T, p *kit.Perdure, path string) <-chan []trace.Span {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan []trace.Span, 1)
	go func() {
		defer resp.Body.Close()
		var spans []trace.Span
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e struct {
				Type  string
				Trace *trace.Trace
				Spans []trace.Span
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Error(err)
			}
			if e.Trace != nil {
				spans = e.Trace.Spans
			}
			for _, s := range e.Spans {
				if i := slices.IndexFunc(spans, func(known trace.Span) bool { return known.ID == s.ID }); i >= 0 {
					spans[i] = s
				} else {
					spans = append(spans, s)
				}
			}
			if e.Type == "end" {
				result <- spans
				return
			}
		}
		t.Errorf("stream of the trace ended without its last event: %v", lines.Err())
		result <- spans
	}()
	return result
}

// traceText returns the spans of a trace with their attempts, and checks that the times are in order.
func traceText(t *testing.T, run *trace.Trace) string {
	t.Helper()
	var b strings.Builder
	depth, start := map[string]int{}, run.StartedAt
	for _, s := range run.Spans {
		if s.ParentID != "" {
			depth[s.ID] = depth[s.ParentID] + 1
		}
		if s.StartedAt.Before(start) || s.EndedAt != nil && s.EndedAt.Before(s.StartedAt) {
			t.Errorf("times of %s = %v to %v, want them after %v", s.Name, s.StartedAt, s.EndedAt, start)
		}
		if s.Kind != trace.KindInterrupt { // opened by the workflow's clock
			start = s.StartedAt
		}
		fmt.Fprintf(&b, "%s%s %s %s\n", strings.Repeat("  ", depth[s.ID]), s.Kind, s.Name, s.Status)
		last := s.StartedAt
		for _, a := range s.Attempts {
			text := fmt.Sprintf("%d %s", a.Number, a.Status)
			if a.Error != nil {
				text += " " + a.Error.Code
			}
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth[s.ID]+1), text)
			if a.StartedAt.Before(last) || a.EndedAt == nil || a.EndedAt.Before(a.StartedAt) {
				t.Errorf("times of attempt %d of %s = %v to %v, want them after %v", a.Number, s.Name, a.StartedAt, a.EndedAt, last)
			}
			last = *a.EndedAt
		}
	}
	return b.String()
}
