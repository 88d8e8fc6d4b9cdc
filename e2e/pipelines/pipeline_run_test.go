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

// pipelineRun is a run of one of a workshop's agents, and those that go on with it, as somebody
// sees them who answers what they ask.
type pipelineRun struct {
	w      *journalServer
	name   string // by which the workshop knows it
	reader *kit.Follower
}

// errand gives an agent work.
func (w *journalServer) errand(t *testing.T, p *kit.Endpoint, agent string) *pipelineRun {
	t.Helper()
	return w.start(t, p, agent, func(*kit.Input) {})
}

// start is errand with an input that is not the usual one.
func (w *journalServer) start(t *testing.T, p *kit.Endpoint, agent string, change func(*kit.Input)) *pipelineRun {
	t.Helper()
	e := &pipelineRun{w: w, name: strings.TrimSpace(kit.Say(""))}
	in := kit.NewInput(e.name)
	change(&in)
	e.reader = p.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
	return e
}

// within gives whoever watches so much time for all of it.
func (e *pipelineRun) within(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	e.reader.Cut()
	e.reader.Ctx = ctx
}

// watch reads to the end of the last run, and approves whatever is asked. seen is called behind
// each event with how many there were; nil = nobody wants to know.
func (e *pipelineRun) watch(t *testing.T, seen func(n int)) {
	t.Helper()
	for {
		last, err := e.reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if seen != nil {
			seen(len(e.reader.Events))
		}
		if last.Terminal() && !e.asks(t) {
			return
		}
	}
}

// asks reports whether the run has ended with questions: then they are approved, and the reader
// reads on.
func (e *pipelineRun) asks(t *testing.T) bool {
	t.Helper()
	e.reader.Cut()
	if kit.Outcome(e.reader.Events[len(e.reader.Events)-1]) != "interrupt" {
		return false
	}
	for _, q := range kit.InterruptsOf(t, e.reader.Events) {
		e.approve(t, q.ID)
	}
	e.reader.View = kit.ThreadPath(e.reader.In)
	return true
}

// approve approves something, as often as it takes until it is known that that was heard.
func (e *pipelineRun) approve(t *testing.T, question string) {
	t.Helper()
	for {
		status, answer := kit.Decide(t, e.reader.P, e.reader.In.ThreadID, question, `{"decision":"approve"}`)
		switch {
		case status == http.StatusOK:
			return
		case status != http.StatusServiceUnavailable || e.reader.Ctx.Err() != nil:
			t.Fatalf("approve: %d %v", status, answer)
		}
	}
}

// runResult is what an order comes to, in words that are the same for all orders of an agent.
type runResult struct {
	Ends     string
	Messages []string // in any order: branches are beside one another
	State    string
	Steps    map[string][]string // that begin and end, by who does them
	Work     []string            // what the tools were asked, each thing once
}

// product returns what one has of the order who reads it when it is over.
func (e *pipelineRun) product(t *testing.T) runResult {
	t.Helper()
	f := e.reader
	late := e.again(t)
	ends := late[len(late)-1]
	if last := f.Events[len(f.Events)-1]; string(last.Data) != string(ends.Data) {
		t.Errorf("it ended with %s, and afterwards it has with %s", last.Data, ends.Data)
	}
	state, err := json.Marshal(f.P.StateOf(t, f.In))
	if err != nil {
		t.Fatal(err)
	}
	return runResult{
		Ends:     e.plain(kit.Outcome(ends) + ends.Member("code")),
		Messages: e.messages(kit.Show(t, f.In.Messages, late)),
		State:    e.plain(string(state)),
		Steps:    steps(late),
		Work:     e.work(),
	}
}

// again reads all runs of the errand once more.
func (e *pipelineRun) again(t *testing.T) []kit.Event {
	t.Helper()
	var all []kit.Event
	for _, started := range e.reader.Events {
		if started.Type != "RUN_STARTED" {
			continue
		}
		in := e.reader.In
		in.RunID = started.Member("runId")
		run := e.reader.P.Quiet(e.reader.Ctx, in)
		run.View = kit.EventsPath(in)
		if err := run.Read(); err != nil {
			t.Fatal(err)
		}
		all = append(all, run.Events...)
	}
	return all
}

// plain returns a text without the order's name.
func (e *pipelineRun) plain(text string) string { return strings.ReplaceAll(text, e.name, "ORDER") }

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

// steps returns those that begin and end, by the name of the subagent that does them.
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

func (e *pipelineRun) work() []string {
	asked := map[string]bool{}
	for _, d := range e.w.done(e.name) {
		if d.tool != "model" {
			asked[e.plain(d.tool+" "+d.what)] = true
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// once checks that the order had everything done once: but for what was cut off so many times by a
// kill, and was not answered or whose answer was lost.
func (e *pipelineRun) once(t *testing.T, cuts int) {
	t.Helper()
	keys, asked, again := map[string]string{}, map[string]int{}, 0
	for _, d := range e.w.done(e.name) {
		what := d.tool + " " + d.what
		if d.tool == "flaky" { // its tries are calls of their own
			what += " " + d.key
		}
		if asked[what]++; asked[what] > 1 {
			again++
		}
		if d.tool == "model" {
			continue
		}
		if before, ok := keys[what]; ok && before != d.key || d.key == "" {
			t.Errorf("%q was asked for under the keys %q and %q", what, before, d.key)
		}
		keys[what] = d.key
		if d.tool == "pay" && asked[what] > 1 {
			t.Errorf("%q is not idempotent, and was asked for %d times", what, asked[what])
		}
	}
	if again > cuts {
		t.Errorf("%d requests were made again: %v", again, asked)
	}
}

// unknown is what is said of a call that is not known to have been made.
const unknown = "The call was interrupted after it had begun. Whether it took effect is unknown; it was not repeated."

// settled returns the product with what a call has come to that a kill has cut off, if one was.
func (got runResult) settled(want runResult) runResult {
	if i := slices.Index(got.Messages, "tool: "+unknown); i >= 0 {
		got.Messages = slices.Sorted(slices.Values(append(slices.Delete(slices.Clone(got.Messages), i, i+1), `tool: {"kept":"bill"}`+"\n")))
		got.State = strings.ReplaceAll(got.State, `"paid":{"error":{"code":"tool_failed","message":"step \"paid\": the tool \"pay\" failed: `+unknown+`"}}`, `"paid":{"kept":"bill"}`)
		got.Work = want.Work // it may not even have been asked
	}
	return got
}

// same checks that two orders come to the same.
func (want runResult) same(t *testing.T, what string, got runResult) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-undisturbed +it):\n%s", what, diff)
	}
}

// shows checks that who has watched has what one has who reads it afterwards.
func (e *pipelineRun) shows(t *testing.T) {
	t.Helper()
	in := e.reader.In.Messages
	watched := kit.WithoutEmptied(kit.Show(t, in, e.reader.Events, kit.Withdrawn))
	if diff := cmp.Diff(kit.Show(t, in, e.again(t)), watched); diff != "" {
		t.Errorf("afterwards (-) it has other messages than those watched (+):\n%s", diff)
	}
}
