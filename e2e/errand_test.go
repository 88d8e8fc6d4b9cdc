package e2e

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
)

// errand is a run of one of a workshop's agents, and those that go on with it, as somebody sees
// them who answers what they ask.
type errand struct {
	w      *workshop
	name   string // by which the workshop knows it
	reader *follower
}

// errand gives an agent work.
func (w *workshop) errand(t *testing.T, p *endpoint, agent string) *errand {
	t.Helper()
	return w.start(t, p, agent, func(*input) {})
}

// start is errand with an input that is not the usual one.
func (w *workshop) start(t *testing.T, p *endpoint, agent string, change func(*input)) *errand {
	t.Helper()
	e := &errand{w: w, name: strings.TrimSpace(say(""))}
	in := newInput(e.name)
	change(&in)
	e.reader = p.followAgent(t, "/v1/agents/"+agent+"/runs", in)
	return e
}

// within gives whoever watches so much time for all of it.
func (e *errand) within(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	e.reader.cut()
	e.reader.ctx = ctx
}

// watch reads to the end of the last run, and approves whatever is asked. seen is called behind
// each event with how many there were; nil = nobody wants to know.
func (e *errand) watch(t *testing.T, seen func(n int)) {
	t.Helper()
	for {
		last, err := e.reader.next()
		if err != nil {
			t.Fatal(err)
		}
		if seen != nil {
			seen(len(e.reader.events))
		}
		if last.terminal() && !e.asks(t) {
			return
		}
	}
}

// asks reports whether the run has ended with questions: then they are approved, and the reader
// reads on.
func (e *errand) asks(t *testing.T) bool {
	t.Helper()
	e.reader.cut()
	if outcome(e.reader.events[len(e.reader.events)-1]) != "interrupt" {
		return false
	}
	for _, q := range interruptsOf(t, e.reader.events) {
		e.approve(t, q.ID)
	}
	e.reader.view = threadPath(e.reader.in)
	return true
}

// approve approves something, as often as it takes until it is known that that was heard.
func (e *errand) approve(t *testing.T, question string) {
	t.Helper()
	for {
		status, answer := decide(t, e.reader.p, e.reader.in.ThreadID, question, `{"decision":"approve"}`)
		switch {
		case status == http.StatusOK:
			return
		case status != http.StatusServiceUnavailable || e.reader.ctx.Err() != nil:
			t.Fatalf("approve: %d %v", status, answer)
		}
	}
}

// product is what an order comes to, in words that are the same for all orders of an agent.
type product struct {
	Ends     string
	Messages []string // in any order: branches are beside one another
	State    string
	Steps    map[string][]string // that begin and end, by who does them
	Work     []string            // what the tools were asked, each thing once
}

// product returns what one has of the order who reads it when it is over.
func (e *errand) product(t *testing.T) product {
	t.Helper()
	f := e.reader
	late := e.again(t)
	ends := late[len(late)-1]
	if last := f.events[len(f.events)-1]; string(last.Data) != string(ends.Data) {
		t.Errorf("it ended with %s, and afterwards it has with %s", last.Data, ends.Data)
	}
	state, err := json.Marshal(f.p.stateOf(t, f.in))
	if err != nil {
		t.Fatal(err)
	}
	return product{
		Ends:     e.plain(outcome(ends) + ends.member("code")),
		Messages: e.messages(show(t, f.in.Messages, late)),
		State:    e.plain(string(state)),
		Steps:    steps(late),
		Work:     e.work(),
	}
}

// again reads all runs of the errand once more.
func (e *errand) again(t *testing.T) []event {
	t.Helper()
	var all []event
	for _, started := range e.reader.events {
		if started.Type != "RUN_STARTED" {
			continue
		}
		in := e.reader.in
		in.RunID = started.member("runId")
		run := e.reader.p.quiet(e.reader.ctx, in)
		run.view = eventsPath(in)
		if err := run.read(); err != nil {
			t.Fatal(err)
		}
		all = append(all, run.events...)
	}
	return all
}

// plain returns a text without the order's name.
func (e *errand) plain(text string) string { return strings.ReplaceAll(text, e.name, "ORDER") }

func (e *errand) messages(messages []message) []string {
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
func steps(events []event) map[string][]string {
	names, list := map[string]string{"": ""}, map[string][]string{}
	for _, e := range events {
		who := e.member("subagentRunId")
		switch e.Type {
		case "SUBAGENT_STARTED":
			names[who] = e.member("name")
		case "STEP_STARTED":
			list[names[who]] = append(list[names[who]], "+"+e.member("stepName"))
		case "STEP_FINISHED":
			list[names[who]] = append(list[names[who]], "-"+e.member("stepName"))
		}
	}
	return list
}

func (e *errand) work() []string {
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
func (e *errand) once(t *testing.T, cuts int) {
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
func (got product) settled(want product) product {
	if i := slices.Index(got.Messages, "tool: "+unknown); i >= 0 {
		got.Messages = slices.Sorted(slices.Values(append(slices.Delete(slices.Clone(got.Messages), i, i+1), `tool: {"kept":"bill"}`+"\n")))
		got.State = strings.ReplaceAll(got.State, `"paid":{"error":{"code":"tool_failed","message":"step \"paid\": the tool \"pay\" failed: `+unknown+`"}}`, `"paid":{"kept":"bill"}`)
		got.Work = want.Work // it may not even have been asked
	}
	return got
}

// same checks that two orders come to the same.
func (want product) same(t *testing.T, what string, got product) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-undisturbed +it):\n%s", what, diff)
	}
}

// shows checks that who has watched has what one has who reads it afterwards.
func (e *errand) shows(t *testing.T) {
	t.Helper()
	in := e.reader.in.Messages
	watched := withoutEmptied(show(t, in, e.reader.events, withdrawn))
	if diff := cmp.Diff(show(t, in, e.again(t)), watched); diff != "" {
		t.Errorf("afterwards (-) it has other messages than those watched (+):\n%s", diff)
	}
}
