package pipelines

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// pipelineRun is a run of an agent of the journal server, and the runs that continue it, as seen by
// a client that approves all interrupts.
type pipelineRun struct {
	server *journalServer
	name   string // the order in the server's requests
	reader *kit.Follower
}

// start starts a run of an agent.
func (w *journalServer) start(t *testing.T, p *kit.Endpoint, agent string) *pipelineRun {
	t.Helper()
	return w.startWith(t, p, agent, func(*kit.Input) {})
}

// startWith is like start, with a changed input.
func (w *journalServer) startWith(t *testing.T, p *kit.Endpoint, agent string, change func(*kit.Input)) *pipelineRun {
	t.Helper()
	e := &pipelineRun{server: w, name: strings.TrimSpace(kit.Marked(""))}
	in := kit.NewInput(e.name)
	change(&in)
	e.reader = p.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
	return e
}

// setTimeout bounds the time to read the whole run.
func (e *pipelineRun) setTimeout(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	e.reader.Cut()
	e.reader.Ctx = ctx
}

// follow reads to the end of the last run and approves all interrupts. seen is called after each
// event with the number of events; nil = none.
func (e *pipelineRun) follow(t *testing.T, seen func(n int)) {
	t.Helper()
	for {
		last, err := e.reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if seen != nil {
			seen(len(e.reader.Events))
		}
		if last.Terminal() && !e.approveAll(t) {
			return
		}
	}
}

// approveAll reports whether the run has ended with interrupts. If so, it approves them and makes
// the reader continue on the thread.
func (e *pipelineRun) approveAll(t *testing.T) bool {
	t.Helper()
	e.reader.Cut()
	if kit.Outcome(e.reader.Events[len(e.reader.Events)-1]) != "interrupt" {
		return false
	}
	for _, q := range kit.InterruptsOf(t, e.reader.Events) {
		e.approve(t, q.ID)
	}
	e.reader.AttachPath = kit.ThreadPath(e.reader.In)
	return true
}

// approve approves an interrupt, and repeats the request until the API answers.
func (e *pipelineRun) approve(t *testing.T, question string) {
	t.Helper()
	for {
		status, answer := kit.Decide(t, e.reader.Endpoint, e.reader.In.ThreadID, question, `{"decision":"approve"}`)
		switch {
		case status == http.StatusOK:
			return
		case status != http.StatusServiceUnavailable || e.reader.Ctx.Err() != nil:
			t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
		}
	}
}

// runResult is the outcome of a run. It is the same for all runs of an agent.
type runResult struct {
	Ends     string
	Messages []string // sorted: branches are concurrent
	State    string
	Steps    map[string][]string // step events by subagent
	Work     []string            // tool requests, each once
}

// result returns the outcome that a reader sees after the end.
func (e *pipelineRun) result(t *testing.T) runResult {
	t.Helper()
	f := e.reader
	late := e.readAgain(t)
	ends := late[len(late)-1]
	if last := f.Events[len(f.Events)-1]; string(last.Data) != string(ends.Data) {
		t.Errorf("end of the run for the live reader = %s, want %s as for the later reader", last.Data, ends.Data)
	}
	state, err := json.Marshal(f.Endpoint.StateOf(t, f.In))
	if err != nil {
		t.Fatal(err)
	}
	return runResult{
		Ends:     e.plain(kit.Outcome(ends) + ends.Member("code")),
		Messages: e.messages(kit.ShownMessages(t, f.In.Messages, late)),
		State:    e.plain(string(state)),
		Steps:    steps(late),
		Work:     e.work(),
	}
}

// readAgain reads all runs of the pipeline again.
func (e *pipelineRun) readAgain(t *testing.T) []kit.Event {
	t.Helper()
	var all []kit.Event
	for _, started := range e.reader.Events {
		if started.Type != "RUN_STARTED" {
			continue
		}
		in := e.reader.In
		in.RunID = started.Member("runId")
		run := e.reader.Endpoint.NewUnrecordedFollower(e.reader.Ctx, in)
		run.AttachPath = kit.EventsPath(in)
		if err := run.Read(); err != nil {
			t.Fatal(err)
		}
		all = append(all, run.Events...)
	}
	return all
}

// plain returns a text without the run's name.
func (e *pipelineRun) plain(text string) string { return strings.ReplaceAll(text, e.name, "ORDER") }

// messages returns messages without their IDs.
func (e *pipelineRun) messages(messages []kit.Message) []string {
	var list []string
	for _, m := range messages {
		text := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			text += " " + c.Function.Name + c.Function.Arguments
		}
		list = append(list, e.plain(text))
	}
	slices.Sort(list)
	return list
}

// steps returns the step events by the name of the subagent.
func steps(events []kit.Event) map[string][]string {
	names, list := map[string]string{"": ""}, map[string][]string{}
	for _, e := range events {
		who := e.Member("subagentRunId")
		switch e.Type {
		case "SUBAGENT_STARTED":
			names[who] = e.Member("name")
		case "STEP_STARTED":
			list[names[who]] = append(list[names[who]], "+"+e.Member("stepName"))
		case "STEP_FINISHED":
			list[names[who]] = append(list[names[who]], "-"+e.Member("stepName"))
		}
	}
	return list
}

// work returns the tool calls of the run, sorted.
func (e *pipelineRun) work() []string {
	asked := map[string]bool{}
	for _, d := range e.server.requestsOf(e.name) {
		if d.tool != "model" {
			asked[e.plain(d.tool+" "+d.what)] = true
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// checkOnce checks that each tool call was made once. cuts is the number of calls that kills may
// have interrupted before their answer was known.
func (e *pipelineRun) checkOnce(t *testing.T, cuts int) {
	t.Helper()
	keys, asked, again := map[string]string{}, map[string]int{}, 0
	for _, d := range e.server.requestsOf(e.name) {
		what := d.tool + " " + d.what
		if d.tool == "flaky" { // a retry of the step is another call
			what += " " + d.key
		}
		if asked[what]++; asked[what] > 1 {
			again++
		}
		if d.tool == "model" {
			continue
		}
		if before, ok := keys[what]; ok && before != d.key || d.key == "" {
			t.Errorf("idempotency keys of %q = %q and %q, want the same", what, before, d.key)
		}
		keys[what] = d.key
		if d.tool == "pay" && asked[what] > 1 {
			t.Errorf("number of calls of %q, which is not idempotent = %d, want 1", what, asked[what])
		}
	}
	if again > cuts {
		t.Errorf("number of repeated requests = %d, want at most %d: %v", again, cuts, asked)
	}
}

// unknown is the result of a call whose effect is unknown.
const unknown = "The call was interrupted after it had begun. Whether it took effect is unknown; it was not repeated."

// settled returns the result with the wanted outcome of a call that a kill has interrupted, if
// there is one.
func (got runResult) settled(want runResult) runResult {
	if i := slices.Index(got.Messages, "tool: "+unknown); i >= 0 {
		got.Messages = slices.Sorted(slices.Values(append(slices.Delete(slices.Clone(got.Messages), i, i+1), `tool: {"kept":"bill"}`+"\n")))
		got.State = strings.ReplaceAll(got.State, `"paid":{"error":{"code":"tool_failed","message":"step \"paid\": the tool \"pay\" failed: `+unknown+`"}}`, `"paid":{"kept":"bill"}`)
		got.Work = want.Work // the tool may not have been called
	}
	return got
}

// wantSame compares two outcomes.
func (want runResult) wantSame(t *testing.T, what string, got runResult) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-undisturbed +it):\n%s", what, diff)
	}
}

// checkFollower checks that the live reader has the same messages and state as a reader that comes
// later.
func (e *pipelineRun) checkFollower(t *testing.T) {
	t.Helper()
	in := e.reader.In.Messages
	watched := kit.WithoutEmptyReasoning(kit.ShownMessages(t, in, e.reader.Events, kit.RetractWarning))
	if diff := cmp.Diff(kit.ShownMessages(t, in, e.readAgain(t)), watched); diff != "" {
		t.Errorf("messages of a later reader (-) and of the live reader (+):\n%s", diff)
	}
}
