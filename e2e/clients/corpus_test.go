package clients

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// scenario is one run, or two, to which viewers connect.
type scenario struct {
	agent  string // "" = the assistant
	prompt string
	state  any // the input's state
	// model has the answers to the model calls, in order.
	model []kit.Fixture
	// during is called when some chunks of the answer have arrived. It returns a follower of the
	// thread's next run, whose id is next; nil = no next run.
	during func(t *testing.T, in kit.Input) *kit.Follower
	next   string
	// asks is true if the run ends with interrupts. The next run answers them.
	asks bool
	// shows lists event types that the stream must have, in this order, so that the scenario tests
	// what it should.
	shows string
}

// slowAnswer returns an answer with about as many chunks as it has words.
func slowAnswer(r kit.Response) kit.Fixture { return answerWithLatency(r, 15) }

// answerWithLatency is like slowAnswer, with the time between two chunks in milliseconds.
func answerWithLatency(r kit.Response, latency int) kit.Fixture {
	return kit.Fixture{Response: r, ChunkSize: 8, Latency: latency}
}

// truncatedAnswer returns an answer whose connection breaks after some chunks.
func truncatedAnswer(r kit.Response, chunks int) kit.Fixture {
	f := slowAnswer(r)
	f.TruncateAfterChunks = chunks
	return f
}

// calculateCalls returns calls of the calculator.
func calculateCalls(expressions ...string) kit.Response {
	var r kit.Response
	for _, e := range expressions {
		r.ToolCalls = append(r.ToolCalls, kit.ModelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":%q}`, e)})
	}
	return r
}

// corpus returns a scenario of each kind of run.
func corpus() map[string]scenario {
	const sum = "1+2+3+4+5+6+7+8+9+10+11+12+13+14+15"
	var (
		given   = map[string]any{"given": kit.Mark}
		thought = kit.Response{Reasoning: kit.LongText(120), Content: kit.LongText(80)}
		one     = calculateCalls(sum)
		two     = calculateCalls(sum, "2*"+sum)
		endless = calculateCalls(kit.LongText(4000))
	)
	two.Content = kit.LongText(40)
	text := func(n int) kit.Response { return kit.Response{Content: kit.LongText(n)} }
	return map[string]scenario{
		"text": {model: []kit.Fixture{slowAnswer(text(250))}},
		"reasoning": {
			model: []kit.Fixture{slowAnswer(thought)},
			shows: "REASONING_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT RUN_FINISHED",
		},
		"reasoning that its provider wants back": {
			agent: "think", prompt: "What is 12*7, and what time is it?",
			shows: "REASONING_ENCRYPTED_VALUE CUSTOM STATE_DELTA TOOL_CALL_RESULT TOOL_CALL_RESULT REASONING_ENCRYPTED_VALUE RUN_FINISHED",
		},
		"parallel tools": {
			model: []kit.Fixture{slowAnswer(two), slowAnswer(text(60))},
			shows: "TOOL_CALL_START TOOL_CALL_START TOOL_CALL_END TOOL_CALL_END TOOL_CALL_RESULT TOOL_CALL_RESULT TEXT_MESSAGE_END RUN_FINISHED",
		},
		"predicted state": {
			agent: "drafter", model: []kit.Fixture{slowAnswer(two), slowAnswer(text(60))},
			shows: "CUSTOM STATE_DELTA TOOL_CALL_RESULT RUN_FINISHED",
		},
		"predicted state with a given one": {
			agent: "drafter", state: given, model: []kit.Fixture{slowAnswer(two), slowAnswer(text(60))},
			shows: "CUSTOM STATE_DELTA TOOL_CALL_RESULT RUN_FINISHED",
		},
		"model error": {model: []kit.Fixture{slowAnswer(two), kit.ErrorAnswer(400)}, shows: "TOOL_CALL_RESULT RUN_ERROR"},
		"text that breaks off": {
			model: []kit.Fixture{truncatedAnswer(text(200), 10), slowAnswer(text(120))},
			shows: "TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"text that breaks off twice": {
			model: []kit.Fixture{truncatedAnswer(text(200), 10), truncatedAnswer(text(200), 6), slowAnswer(text(60))},
			shows: "MESSAGES_SNAPSHOT MESSAGES_SNAPSHOT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"text that breaks off for good": {
			model: []kit.Fixture{truncatedAnswer(text(200), 10), kit.ErrorAnswer(400)},
			shows: "TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT RUN_ERROR",
		},
		"reasoning that breaks off": {
			model: []kit.Fixture{truncatedAnswer(thought, 9), slowAnswer(thought)},
			shows: "REASONING_MESSAGE_CONTENT MESSAGES_SNAPSHOT REASONING_MESSAGE_CONTENT RUN_FINISHED",
		},
		"call that breaks off": {
			model: []kit.Fixture{truncatedAnswer(one, 5), slowAnswer(two), slowAnswer(text(60))},
			shows: "TOOL_CALL_ARGS MESSAGES_SNAPSHOT TOOL_CALL_END TOOL_CALL_RESULT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"second of two calls that breaks off": {
			agent: "drafter", state: given, model: []kit.Fixture{truncatedAnswer(two, 20), slowAnswer(text(60))},
			shows: "STATE_DELTA TOOL_CALL_START TOOL_CALL_ARGS MESSAGES_SNAPSHOT STATE_SNAPSHOT TOOL_CALL_END TEXT_MESSAGE_CONTENT RUN_FINISHED",
		},
		"predicted state of a second answer that breaks off": {
			agent: "drafter", model: []kit.Fixture{slowAnswer(one), truncatedAnswer(calculateCalls("2*"+sum), 5), slowAnswer(text(60))},
			shows: "STATE_DELTA TOOL_CALL_RESULT STATE_DELTA MESSAGES_SNAPSHOT STATE_SNAPSHOT TOOL_CALL_END MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"predicted state that breaks off for good": {
			agent: "drafter", model: []kit.Fixture{truncatedAnswer(one, 5), kit.ErrorAnswer(400)},
			shows: "STATE_DELTA MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_ERROR",
		},
		"cancelled in a text":      {model: []kit.Fixture{slowAnswer(text(4000))}, during: cancels},
		"cancelled in a reasoning": {model: []kit.Fixture{slowAnswer(kit.Response{Reasoning: kit.LongText(4000), Content: kit.LongText(40)})}, during: cancels},
		"cancelled in a call":      {agent: "drafter", model: []kit.Fixture{slowAnswer(endless)}, during: cancels},
		"branches and a question": {
			agent: "committee", model: []kit.Fixture{slowAnswer(text(120)), slowAnswer(text(120)), slowAnswer(text(60))}, asks: true, next: "run-2",
			shows: "STEP_STARTED SUBAGENT_STARTED SUBAGENT_STARTED TEXT_MESSAGE_CONTENT TOOL_CALL_RESULT SUBAGENT_FINISHED SUBAGENT_FINISHED STEP_FINISHED STEP_STARTED RUN_FINISHED",
		},
		"branch that breaks off": {
			// The other branch streams when the next attempt begins, and ends before that does.
			// Clients that compact the stream move the snapshot in between after the branch's
			// message.
			agent: "committee", model: []kit.Fixture{truncatedAnswer(text(200), 10), answerWithLatency(text(250), 90), answerWithLatency(text(200), 200), slowAnswer(text(60))}, asks: true, next: "run-2",
			shows: "SUBAGENT_STARTED SUBAGENT_STARTED TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT SUBAGENT_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		},
		"cancelled in branches": {agent: "committee", model: []kit.Fixture{slowAnswer(text(4000)), slowAnswer(text(4000))}, during: cancels},
		"interrupted in a text": {model: []kit.Fixture{slowAnswer(text(4000))}, during: interrupts, next: "run-2"},
		"interrupted in a call": {agent: "drafter", model: []kit.Fixture{slowAnswer(endless)}, during: interrupts, next: "run-2"},
	}
}

// cancels follows a run that is cancelled.
func cancels(t *testing.T, in kit.Input) *kit.Follower {
	if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
		t.Errorf("cancel: %d, want 202", got)
	}
	return nil
}

// interrupts follows a run that ends with an interrupt.
func interrupts(t *testing.T, in kit.Input) *kit.Follower {
	next := in.NextRun("run-2", "interrupt", kit.UserMessage(kit.Marked("Stop it.")))
	kit.SharedModel.AnswerInOrder(t, next.Messages[1].Content, slowAnswer(kit.Response{Content: kit.LongText(100)}))
	return kit.Shared.Follow(t, next)
}

// answers returns the run that answers the interrupts of the scenario's run.
func (s scenario) answers(t *testing.T, in kit.Input) *kit.Follower {
	t.Helper()
	next := in
	next.RunID = s.next
	for _, a := range kit.Shared.AwaitPending(t, "?thread="+in.ThreadID, in.ThreadID).Items {
		next.Resume = append(next.Resume, map[string]any{"interruptId": a.ID, "status": "resolved", "payload": map[string]any{"approved": true}})
	}
	return kit.Shared.FollowAgent(t, s.path(), next)
}

// path returns the route that starts runs of the scenario's agent.
func (s scenario) path() string {
	if s.agent == "" {
		return kit.AssistantPath
	}
	return "/v1/agents/" + s.agent + "/runs"
}

// TestCorpus: a viewer may connect at any moment and in any way, and may disconnect after any event
// and continue. It always has what a reader has that reads the run after its end. The viewers are
// stock clients of both generations.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, s := range corpus() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				// A reset connection discards what was not read yet, so on a busy machine a
				// scenario may lack some of its events. The viewers must be right in each attempt.
				for range 4 {
					live := s.run(t, g)
					if t.Failed() || missing(s.shows, live) == "" {
						return
					}
					t.Logf("published again because the viewer did not show %s", missing(s.shows, live))
				}
				t.Error("the viewer never showed the case's event")
			})
		})
	}
}

// run runs the scenario with viewers, and adds more viewers after its end. It returns the events of
// the first reader.
func (s scenario) run(t *testing.T, g kit.Generation) []kit.Event {
	t.Helper()
	in := kit.NewInput(kit.Marked(s.prompt))
	in.State = s.state
	if g.Legacy {
		in.ProtocolVersion = ""
	}
	if len(s.model) > 0 {
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, slices.Clone(s.model)...)
	}
	live := kit.Shared.FollowAgent(t, s.path(), in)
	c := kit.NewViewers(t, g, live)
	c.Last = s.next
	next := s.read(t, c, live)
	c.Finish()

	uncut := kit.Shared.NewFollower(t, in)
	uncut.AttachPath = kit.EventsPath(in)
	uncut.Finish(t)
	checkExactContinuation(t, in, uncut.Events)
	if s.asks {
		checkExactContinuation(t, next.In, next.Events)
	}
	if !slices.Equal(kit.EventLines(live.Events), kit.EventLines(uncut.Events)) {
		c.Reconnect() // viewers that have seen retracted events
	}
	c.AddJoining("afterwards")
	c.AddBinary("read all over the binary wire", kit.EventsPath(in), 0)
	c.Verify(uncut, next)
	return live.Events
}

// read reads the run to its end while it adds viewers, and then the next run, if there is one.
func (s scenario) read(t *testing.T, c *kit.Viewers, live *kit.Follower) (next *kit.Follower) {
	t.Helper()
	chunks := 0
	for n := 1; ; n++ {
		e, err := live.Next()
		if err != nil {
			t.Fatal(err)
		}
		if n < 6 || n%4 == 0 {
			c.AddAtEvent(n)
		}
		if slices.Contains([]string{"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"}, e.Type) {
			if chunks++; chunks == 12 && s.during != nil {
				next = s.during(t, live.In)
			}
		}
		if e.Terminal() {
			break
		}
	}
	live.Cut()
	if s.asks {
		next = s.answers(t, live.In)
	}
	if next != nil {
		next.Finish(t)
	}
	return next
}

// missing returns the rest of a list of types after removing the types of events in order.
func missing(types string, events []kit.Event) string {
	list := strings.Fields(types)
	for _, e := range events {
		if len(list) > 0 && e.Type == list[0] {
			list = list[1:]
		}
	}
	return strings.Join(list, " ")
}

// checkExactContinuation checks that a reader that continues after any event of a run gets exactly
// the rest, over SSE and over a socket.
func checkExactContinuation(t *testing.T, in kit.Input, all []kit.Event) {
	t.Helper()
	ws := kit.Shared.Dial(t)
	for i := range all[:len(all)-1] {
		f := kit.Shared.FollowAfter(t, in, all[:i+1])
		f.Finish(t)
		kit.WantSameEvents(t, fmt.Sprintf("after event %d", i), all, f.Events)
		rest, err := ws.ReadAfter(in, all[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		kit.WantSameEvents(t, fmt.Sprintf("after event %d, by a socket", i), all[i+1:], rest)
	}
}
