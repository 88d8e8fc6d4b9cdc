package clients

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// story is a run, or two, for readers to come to and go from.
type story struct {
	agent  string // "" = the assistant
	prompt string
	state  any // what the client brings
	// model is what the model answers to one call after the other.
	model []kit.Fixture
	// meddle is what happens to the run, once a few pieces of its answer have come. It returns who
	// reads the run that comes next on the thread, if one does, whose id is next.
	meddle func(t *testing.T, in kit.Input) *kit.Follower
	next   string
	// asks tells that the run ends with a question. The run that comes next answers it.
	asks bool
	// shows is what a reader from the beginning must be shown, among other things, for the story to
	// be what it is.
	shows string
}

// slowly returns an answer in about as many pieces as it has words.
func slowly(r kit.Response) kit.Fixture { return lasting(r, 15) }

// lasting is such an answer with so many milliseconds between its pieces.
func lasting(r kit.Response, latency int) kit.Fixture {
	return kit.Fixture{Response: r, ChunkSize: 8, Latency: latency}
}

// cutShort returns an answer whose connection ends behind some pieces.
func cutShort(r kit.Response, chunks int) kit.Fixture {
	f := slowly(r)
	f.TruncateAfterChunks = chunks
	return f
}

func calculates(expressions ...string) kit.Response {
	var r kit.Response
	for _, e := range expressions {
		r.ToolCalls = append(r.ToolCalls, kit.ModelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":%q}`, e)})
	}
	return r
}

// corpus returns every kind of run that there is.
func corpus() map[string]story {
	const sum = "1+2+3+4+5+6+7+8+9+10+11+12+13+14+15"
	var (
		given   = map[string]any{"given": kit.Mark}
		thought = kit.Response{Reasoning: kit.Long(120), Content: kit.Long(80)}
		one     = calculates(sum)
		two     = calculates(sum, "2*"+sum)
		endless = calculates(kit.Long(4000))
	)
	two.Content = kit.Long(40)
	text := func(n int) kit.Response { return kit.Response{Content: kit.Long(n)} }
	return map[string]story{
		"text": {model: []kit.Fixture{slowly(text(250))}},
		"reasoning": {
			model: []kit.Fixture{slowly(thought)},
			shows: "REASONING_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT RUN_FINISHED",
		},
		"reasoning that its provider wants back": {
			agent: "think", prompt: "What is 12*7, and what time is it?",
			shows: "REASONING_ENCRYPTED_VALUE CUSTOM STATE_DELTA TOOL_CALL_RESULT TOOL_CALL_RESULT REASONING_ENCRYPTED_VALUE RUN_FINISHED",
		},
		"parallel tools": {
			model: []kit.Fixture{slowly(two), slowly(text(60))},
			shows: "TOOL_CALL_START TOOL_CALL_START TOOL_CALL_END TOOL_CALL_END TOOL_CALL_RESULT TOOL_CALL_RESULT TEXT_MESSAGE_END RUN_FINISHED",
		},
		"predicted state": {
			agent: "drafter", model: []kit.Fixture{slowly(two), slowly(text(60))},
			shows: "CUSTOM STATE_DELTA TOOL_CALL_RESULT RUN_FINISHED",
		},
		"predicted state beside a given one": {
			agent: "drafter", state: given, model: []kit.Fixture{slowly(two), slowly(text(60))},
			shows: "CUSTOM STATE_DELTA TOOL_CALL_RESULT RUN_FINISHED",
		},
		"model error": {model: []kit.Fixture{slowly(two), kit.Fails(400)}, shows: "TOOL_CALL_RESULT RUN_ERROR"},
		"text that breaks off": {
			model: []kit.Fixture{cutShort(text(200), 10), slowly(text(120))},
			shows: "TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"text that breaks off twice": {
			model: []kit.Fixture{cutShort(text(200), 10), cutShort(text(200), 6), slowly(text(60))},
			shows: "MESSAGES_SNAPSHOT MESSAGES_SNAPSHOT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"text that breaks off for good": {
			model: []kit.Fixture{cutShort(text(200), 10), kit.Fails(400)},
			shows: "TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT RUN_ERROR",
		},
		"reasoning that breaks off": {
			model: []kit.Fixture{cutShort(thought, 9), slowly(thought)},
			shows: "REASONING_MESSAGE_CONTENT MESSAGES_SNAPSHOT REASONING_MESSAGE_CONTENT RUN_FINISHED",
		},
		"call that breaks off": {
			model: []kit.Fixture{cutShort(one, 5), slowly(two), slowly(text(60))},
			shows: "TOOL_CALL_ARGS MESSAGES_SNAPSHOT TOOL_CALL_END TOOL_CALL_RESULT MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"second of two calls that breaks off": {
			agent: "drafter", state: given, model: []kit.Fixture{cutShort(two, 20), slowly(text(60))},
			shows: "STATE_DELTA TOOL_CALL_START TOOL_CALL_ARGS MESSAGES_SNAPSHOT STATE_SNAPSHOT TOOL_CALL_END TEXT_MESSAGE_CONTENT RUN_FINISHED",
		},
		"predicted state of a second answer that breaks off": {
			agent: "drafter", model: []kit.Fixture{slowly(one), cutShort(calculates("2*"+sum), 5), slowly(text(60))},
			shows: "STATE_DELTA TOOL_CALL_RESULT STATE_DELTA MESSAGES_SNAPSHOT STATE_SNAPSHOT TOOL_CALL_END MESSAGES_SNAPSHOT RUN_FINISHED",
		},
		"predicted state that breaks off for good": {
			agent: "drafter", model: []kit.Fixture{cutShort(one, 5), kit.Fails(400)},
			shows: "STATE_DELTA MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_ERROR",
		},
		"cancelled in a text":      {model: []kit.Fixture{slowly(text(4000))}, meddle: cancels},
		"cancelled in a reasoning": {model: []kit.Fixture{slowly(kit.Response{Reasoning: kit.Long(4000), Content: kit.Long(40)})}, meddle: cancels},
		"cancelled in a call":      {agent: "drafter", model: []kit.Fixture{slowly(endless)}, meddle: cancels},
		"branches and a question": {
			agent: "committee", model: []kit.Fixture{slowly(text(120)), slowly(text(120)), slowly(text(60))}, asks: true, next: "run-2",
			shows: "STEP_STARTED SUBAGENT_STARTED SUBAGENT_STARTED TEXT_MESSAGE_CONTENT TOOL_CALL_RESULT SUBAGENT_FINISHED SUBAGENT_FINISHED STEP_FINISHED STEP_STARTED RUN_FINISHED",
		},
		"branch that breaks off": {
			// The other branch still speaks when the next attempt begins, and ends before that
			// does: clients that compact what they keep put the snapshot in between behind what it
			// says.
			agent: "committee", model: []kit.Fixture{cutShort(text(200), 10), lasting(text(250), 90), lasting(text(200), 200), slowly(text(60))}, asks: true, next: "run-2",
			shows: "SUBAGENT_STARTED SUBAGENT_STARTED TEXT_MESSAGE_CONTENT MESSAGES_SNAPSHOT SUBAGENT_FINISHED SUBAGENT_FINISHED RUN_FINISHED",
		},
		"cancelled in branches": {agent: "committee", model: []kit.Fixture{slowly(text(4000)), slowly(text(4000))}, meddle: cancels},
		"interrupted in a text": {model: []kit.Fixture{slowly(text(4000))}, meddle: interrupts, next: "run-2"},
		"interrupted in a call": {agent: "drafter", model: []kit.Fixture{slowly(endless)}, meddle: interrupts, next: "run-2"},
	}
}

func cancels(t *testing.T, in kit.Input) *kit.Follower {
	if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
		t.Errorf("cancel: %d, want 202", got)
	}
	return nil
}

func interrupts(t *testing.T, in kit.Input) *kit.Follower {
	next := in.After("run-2", "interrupt", kit.User(kit.Say("Stop it.")))
	kit.SharedModel.Attempts(t, next.Messages[1].Content, slowly(kit.Response{Content: kit.Long(100)}))
	return kit.Shared.Follow(t, next)
}

// answers returns the run that answers what the story's run asks.
func (s story) answers(t *testing.T, in kit.Input) *kit.Follower {
	t.Helper()
	next := in
	next.RunID = s.next
	for _, a := range kit.Shared.Pending(t, "?thread="+in.ThreadID, in.ThreadID).Items {
		next.Resume = append(next.Resume, map[string]any{"interruptId": a.ID, "status": "resolved", "payload": map[string]any{"approved": true}})
	}
	return kit.Shared.FollowAgent(t, s.path(), next)
}

func (s story) path() string {
	if s.agent == "" {
		return kit.Assistant
	}
	return "/v1/agents/" + s.agent + "/runs"
}

// Whoever comes to a run, by whatever way and at whatever moment, and whoever leaves it behind any
// of its events and comes back, ends with what one has who reads it afterwards. Who that is, is a
// client of either generation that we did not write.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, s := range corpus() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.Each(t, func(t *testing.T, g kit.Generation) {
				// A connection that is reset takes along what was not read yet: on a busy machine a
				// story may turn out to be about less than it is meant to be. All readers of it
				// must be right.
				for range 4 {
					live := s.tell(t, g)
					if t.Failed() || missing(s.shows, live) == "" {
						return
					}
					t.Logf("told again, since it did not show %s", missing(s.shows, live))
				}
				t.Error("it never showed what it is about")
			})
		})
	}
}

// tell plays the story to a crowd, and lets more readers come when it is over. It returns what its
// first reader was shown.
func (s story) tell(t *testing.T, g kit.Generation) []kit.Event {
	t.Helper()
	in := kit.NewInput(kit.Say(s.prompt))
	in.State = s.state
	if g.Legacy {
		in.ProtocolVersion = ""
	}
	if len(s.model) > 0 {
		kit.SharedModel.Attempts(t, in.Messages[0].Content, slices.Clone(s.model)...)
	}
	live := kit.Shared.FollowAgent(t, s.path(), in)
	c := kit.NewViewers(t, g, live)
	c.Last = s.next
	next := s.play(t, c, live)
	c.RunsEnd()

	uncut := kit.Shared.Reader(t, in)
	uncut.View = kit.EventsPath(in)
	uncut.Finish(t)
	exact(t, in, uncut.Events)
	if s.asks {
		exact(t, next.In, next.Events)
	}
	if !slices.Equal(kit.Lines(live.Events), kit.Lines(uncut.Events)) {
		c.ComeBack() // who was shown what is withdrawn
	}
	c.Join("afterwards")
	c.Ask("read all over the binary wire", kit.EventsPath(in), 0)
	c.Judge(uncut, next)
	return live.Events
}

// play reads the run to its end, with a crowd that grows, and then the run that comes next, if one
// does.
func (s story) play(t *testing.T, c *kit.Viewers, live *kit.Follower) (next *kit.Follower) {
	t.Helper()
	pieces := 0
	for n := 1; ; n++ {
		e, err := live.Next()
		if err != nil {
			t.Fatal(err)
		}
		if n < 6 || n%4 == 0 {
			c.Come(n)
		}
		if slices.Contains([]string{"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"}, e.Type) {
			if pieces++; pieces == 12 && s.meddle != nil {
				next = s.meddle(t, live.In)
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

// missing returns what is left of a list of types when those that events have were crossed out in
// order.
func missing(types string, events []kit.Event) string {
	list := strings.Fields(types)
	for _, e := range events {
		if len(list) > 0 && e.Type == list[0] {
			list = list[1:]
		}
	}
	return strings.Join(list, " ")
}

// exact checks that behind each event of a run comes what came behind it the first time, on both
// transports.
func exact(t *testing.T, in kit.Input, all []kit.Event) {
	t.Helper()
	ws := kit.Shared.Dial(t)
	for i := range all[:len(all)-1] {
		f := kit.Shared.Behind(t, in, all[:i+1])
		f.Finish(t)
		kit.Same(t, fmt.Sprintf("behind event %d", i), all, f.Events)
		rest, err := ws.Behind(in, all[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		kit.Same(t, fmt.Sprintf("behind event %d, by a socket", i), all[i+1:], rest)
	}
}
