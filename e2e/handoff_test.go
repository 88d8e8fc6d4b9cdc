package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

const toFront, toDesk, toOther = "/v1/agents/front/runs", "/v1/agents/desk/runs", "/v1/agents/other/runs"

// startHandoffs starts a process with agents that hand their threads over to one another.
func startHandoffs(t *testing.T, env ...string) *perdure {
	t.Helper()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents, p.env = filepath.Join("testdata", "handoff"), env
	p.keep(t)
	p.start(t)
	return p
}

// conversation is a thread, run after run, for a client that sends what its user says and leaves
// the rest to the log.
type conversation struct {
	p    *endpoint
	in   input
	had  []message
	runs int
}

func (p *endpoint) converse() *conversation {
	return &conversation{p: p, in: input{ThreadID: newThread(), ProtocolVersion: "1.0"}}
}

// says posts a run in which the user says something, and returns its events.
func (c *conversation) says(t *testing.T, agent, text string) []event {
	t.Helper()
	c.runs++
	c.in.RunID = fmt.Sprint("run-", c.runs)
	said := user(say(text))
	c.in.Messages, c.had = append(c.in.Messages, said), append(c.had, said)
	f := c.p.followAgent(t, agent, c.in)
	f.finish(t)
	c.has(t, f.events)
	return f.events
}

// has takes in what a run has said.
func (c *conversation) has(t *testing.T, events []event) {
	t.Helper()
	c.had = show(t, c.had, events)
}

func (c *conversation) want(t *testing.T, last string) {
	t.Helper()
	if got := c.had[len(c.had)-1]; got.Content != last {
		t.Errorf("the last word is %+v, want %q", got, last)
	}
}

// handsIn returns the hand-offs that clients are told of.
func handsIn(t *testing.T, events []event) (all []string) {
	t.Helper()
	for _, e := range events {
		if isCustom(e) && e.member("name") == "perdure.handoff" {
			h := custom[struct{ From, To string }](t, e, "perdure.handoff")
			all = append(all, h.From+">"+h.To)
		}
	}
	return all
}

// An agent hands the thread over in the middle of a run; the other one speaks in it, and in later
// runs that its client still asks the first one for, until the thread is handed back, or a third
// one is asked for.
func TestHandoff(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	c := p.converse()
	for _, say := range []struct{ agent, text, hands, last string }{
		{toFront, "hello", "", "The front answers."},
		{toFront, "hand over", "front>desk", "The desk answers."},
		{toFront, "hello", "", "The desk answers."},
		{toDesk, "hello", "", "The desk answers."},
		{toFront, "come back", "desk>front", "The front is back."},
		{toFront, "hello", "", "The front answers."},
		{toFront, "hand over", "front>desk", "The desk answers."},
		{toOther, "hello", "", "The other answers."},
		{toFront, "hello", "", "The front answers."},
	} {
		events := c.says(t, say.agent, say.text)
		if got := strings.Join(handsIn(t, events), " "); got != say.hands {
			t.Errorf("%q to %s: %q is handed over, want %q", say.text, say.agent, got, say.hands)
		}
		c.want(t, say.last)
	}
	d := p.converse()
	d.says(t, toFront, "hand over")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for { // the list may lag
		var list struct {
			Items []struct{ ThreadID, Agent string }
		}
		if p.ask(t, "/v1/threads?agent=desk", &list); len(list.Items) == 1 && list.Items[0].ThreadID == d.in.ThreadID {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("threads of the desk are %+v", list)
		}
	}
}

// Stock clients of both generations go on with a thread that was handed over.
func TestHandoffForStockClients(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	each(t, func(t *testing.T, g generation) {
		in, next := newInput(say("hand over")), user(say("hello"))
		d := g.drive(t, p, script{URL: p.url(toFront), ThreadID: in.ThreadID, Messages: in.Messages, Runs: []scriptedRun{{RunID: "r1"}, {RunID: "r2", Add: []message{next}}}})
		for i, end := range d.finish(t) {
			if last := end.Messages[len(end.Messages)-1]; last.Content != "The desk answers." {
				t.Errorf("run %d ends with %+v", i, last)
			}
		}
	})
}

// The triage example leaves customers to whom it concerns, who stays with them, and asks a person
// where it has to.
func TestExampleTriage(t *testing.T) {
	t.Parallel()
	p := startExample(t, "triage")
	const triage = "/v1/agents/triage/runs"
	for _, says := range [][][2]string{
		{{"A nice shop!", "I am a script. How nice of you to say so."}, {"My bill of 40 is wrong.", "I am a script. You get 4 back."}, {"Thank you.", "I am a script. What else about your bill?"}},
		{{"My kettle is broken.", "I am a script. Have you turned it off and on again?"}, {"I have.", "I am a script. And now, does it work?"}, {"And my bill of 70?", "I am a script. You get 7 back."}},
	} {
		c := p.converse()
		for _, said := range says {
			c.says(t, triage, said[0])
			c.want(t, said[1])
		}
	}
	in := newInput("My bill of 120 is wrong.")
	f := p.followAgent(t, triage, in)
	f.finish(t)
	f.approve(t)
	messages := show(t, in.Messages, f.events)
	if last := messages[len(messages)-1]; last.Content != "I am a script. A tenth of 120 is on its way." {
		t.Errorf("at last it says %q", last.Content)
	}
	p.checkRecorded(t, "triage")
}

// Two agents that throw a thread to and fro come to an end.
func TestHandoffsEnd(t *testing.T) {
	t.Parallel()
	p := startHandoffs(t)
	c := p.converse()
	if got := handsIn(t, c.says(t, toFront, "to and fro")); len(got) != runs.MaxHandoffs {
		t.Errorf("%d hand-offs, want %d", len(got), runs.MaxHandoffs)
	}
	if last := c.had[len(c.had)-1]; !strings.HasPrefix(last.Content, "The front keeps it: The conversation was not handed over") {
		t.Errorf("the last word is %+v", last)
	}
}

// The process is killed as soon as clients see the hand-off, and at other moments around it.
func TestHandoffThroughKills(t *testing.T) {
	p := startHandoffs(t)
	for i, at := range []string{"STEP_STARTED", "TOOL_CALL_END", "TOOL_CALL_RESULT", "CUSTOM", "TEXT_MESSAGE_START"} {
		in := newInput(say("hand over"))
		f := p.followAgent(t, toFront, in)
		f.until(t, func(e event) bool { return e.Type == at })
		p.kill()
		p.start(t)
		f.finish(t)
		// What the attempt that died had said is withdrawn, by a snapshot.
		messages := show(t, in.Messages, f.events, withdrawn)
		if last := messages[len(messages)-1]; last.Content != "The desk answers." {
			t.Errorf("%d: killed at %s the last word is %+v", i, at, last)
		}
		if got := handsIn(t, f.events); !slices.Equal(got, []string{"front>desk"}) {
			t.Errorf("%d: killed at %s clients are told %q", i, at, got)
		}
		again := in
		said := user(say("hello"))
		again.RunID, again.Messages = "run-2", append(again.Messages, said)
		next := p.runAgent(t, toFront, again)
		if all := show(t, append(messages, said), next); all[len(all)-1].Content != "The desk answers." {
			t.Errorf("%d: the next run ends with %+v", i, all[len(all)-1])
		}
	}
}

// A hand-off waits for what people decide about in its turn, parked and over a kill; who answers
// asks the agent that has asked. What is decided about the hand-off itself holds as well, and so do
// the questions of the other agent.
func TestHandoffAndApprovals(t *testing.T) {
	p := startHandoffs(t, "PERDURE_PARK_AFTER=100ms")
	for _, ask := range []struct{ text, decision, hands, last string }{
		{"add first", `{"decision":"approve"}`, "front>desk", "The desk has 2."},
		{"with care", `{"decision":"approve"}`, "front>desk", "The desk answers."},
		{"with care", `{"decision":"reject","reason":"no"}`, "", `The front keeps it: A person did not approve this call. It was not made. They said: "no"`},
		{"with care", `{"decision":"edit","args":{}}`, "front>desk", "The desk answers."},
	} {
		in := newInput(say(ask.text))
		f := p.followAgent(t, toFront, in)
		f.finish(t)
		asked := interruptsOf(t, f.events)
		if len(asked) != 1 || len(handsIn(t, f.events)) > 0 {
			t.Fatalf("%s: it asks %+v, and hands over %q", ask.text, asked, handsIn(t, f.events))
		}
		awaitType(t, p.endpoint, in, runs.TypeParked)
		p.kill()
		p.start(t)
		all := p.followThread(t, in) // before the decision: a client that joins a run later is not told of its handoff
		if status, a := decide(t, p.endpoint, in.ThreadID, asked[0].ID, ask.decision); status != http.StatusOK {
			t.Fatalf("%s: %d %v", ask.text, status, a)
		}
		all.untilSuccess(t)
		messages := show(t, in.Messages, all.events)
		if last := messages[len(messages)-1]; last.Content != ask.last {
			t.Errorf("%s: the last word is %q, want %q", ask.text, last.Content, ask.last)
		}
		if got := strings.Join(handsIn(t, all.events), " "); got != ask.hands {
			t.Errorf("%s: %q is handed over, want %q", ask.text, got, ask.hands)
		}
	}
	c := p.converse()
	c.says(t, toFront, "hand over")
	asked := interruptsOf(t, c.says(t, toFront, "ask me"))
	awaitType(t, p.endpoint, c.in, runs.TypeParked)
	c.in.RunID, c.in.Resume = "run-3", []any{map[string]any{"interruptId": asked[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	c.has(t, p.runAgent(t, toFront, c.in))
	c.want(t, "The desk has 10.")
}
