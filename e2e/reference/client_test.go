package reference

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
)

// replay is a stream and the client's earlier messages and state.
type replay struct {
	Messages []agui.Message    `json:"messages"`
	State    json.RawMessage   `json:"state"`
	Events   []json.RawMessage `json:"events"`
}

// replayResult is what the client has after it.
type replayResult struct {
	Error    string `json:"error"`
	Messages []any  `json:"messages"`
	State    any    `json:"state"`
}

// ours applies a stream with this project's reducer.
func (r replay) ours(t *testing.T) replayResult {
	t.Helper()
	var verifier agui.Verifier
	var thinking agui.ThinkingUpgrade
	reducer := agui.NewReducer(r.Messages, r.State)
	var failure string
	for _, raw := range r.Events {
		if err := applyEvent(raw, &thinking, &verifier, reducer); err != nil {
			failure = err.Error()
			break
		}
	}
	messages, err := json.Marshal(reducer.Messages())
	if err != nil {
		t.Fatal(err)
	}
	got := replayResult{Error: failure}
	if err := json.Unmarshal(fmt.Appendf(nil, `{"messages":%s,"state":%s}`, messages, reducer.State()), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// applyEvent applies an event.
func applyEvent(raw json.RawMessage, thinking *agui.ThinkingUpgrade, verifier *agui.Verifier, reducer *agui.Reducer) error {
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	if e, _, err = thinking.Upgrade(e); err != nil {
		return err
	}
	if e, _ = agui.Strip(e); e == nil {
		return nil
	}
	if err := verifier.Check(e); err != nil {
		return err
	}
	return reducer.Apply(e)
}

// compare reports how two results differ; "" = they agree. Of a refused stream only the refusal
// counts, since the client applies events later than it checks them.
func compare(ours, theirs replayResult) string {
	if (ours.Error == "") != (theirs.Error == "") {
		return fmt.Sprintf("ours: %q, the reference: %q", ours.Error, theirs.Error)
	}
	if ours.Error != "" {
		return ""
	}
	return cmp.Diff(theirs, ours)
}

// differences are our streams about which package agui deliberately differs from the reference
// client 1.0, and why.
var differences = map[string]string{
	"activity-delta-must-leave-an-object": "the specification wants an object; the client lets a patch make it anything",
	"encrypted-value-lands-on-the-call":   "the type of an encrypted value is new in 1.1",
}

func TestReducersAgreeOnRecordedStreams(t *testing.T) {
	t.Parallel()
	client := startReference(t, "v1", "replay.mjs")
	files, err := filepath.Glob("../../agui/testdata/streams/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("streams: got none (%v), want some", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Name   string            `json:"name"`
			Input  replay            `json:"input"`
			Stream []json.RawMessage `json:"stream"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		job := replay{Messages: append([]agui.Message{}, c.Input.Messages...), State: c.Input.State, Events: c.Stream}
		if job.State == nil {
			job.State = json.RawMessage("{}")
		}
		if job.Events == nil {
			job.Events = []json.RawMessage{}
		}
		var theirs replayResult
		client.ask(job, &theirs)
		diff := compare(job.ours(t), theirs)
		if reason := differences[c.Name]; (diff != "") != (reason != "") {
			t.Errorf("%s (-reference +ours), want a difference if there is a reason, which is %q:\n%s", c.Name, reason, diff)
		}
	}
}

// TestReducersAgreeOnRandomStreams: random streams find unexpected differences. Each stream is one
// run of events that package agui accepts. One in four has an event that may be illegal.
func TestReducersAgreeOnRandomStreams(t *testing.T) {
	t.Parallel()
	client := startReference(t, "v1", "replay.mjs")
	refused := 0
	for seed := range uint64(400) {
		g := newGenerator(seed)
		job := replay{Messages: []agui.Message{}, State: json.RawMessage(`{"n":0,"l":[]}`), Events: g.stream(t)}
		var theirs replayResult
		client.ask(job, &theirs)
		ours := job.ours(t)
		if ours.Error != "" {
			refused++
		}
		if diff := compare(ours, theirs); diff != "" {
			stream, _ := json.MarshalIndent(job.Events, "", " ")
			t.Fatalf("seed %d (-reference +ours):\n%s\n%s", seed, diff, stream)
		}
	}
	if refused < 20 || refused > 200 {
		t.Errorf("number of refused streams = %d, want 20 to 200", refused)
	}
}

// generator makes random streams.
type generator struct {
	*rand.Rand
	events []agui.Event
}

// newGenerator returns a generator of random streams.
func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible random streams
}

// stream returns a random stream.
func (g *generator) stream(t *testing.T) []json.RawMessage {
	t.Helper()
	g.add(&agui.RunStarted{ThreadID: "t", RunID: "r"})
	wild := -1
	if g.IntN(4) == 0 {
		wild = g.IntN(40)
	}
	for i := range 40 {
		e := g.event()
		if !g.add(e) && i == wild {
			g.events = append(g.events, e)
			return encoded(t, g.events) // clients do not read further
		}
	}
	open := g.verified().Open()
	for i := len(open) - 1; i >= 0; i-- {
		g.add(closing(open[i])) // no effect on items that chunks opened: the end of the run closes them
	}
	// The client ends a message of chunks twice if another owner ends it explicitly. Package agui
	// refuses that.
	g.events = append(g.events, &agui.RunFinished{ThreadID: "t", RunID: "r"})
	return encoded(t, g.events)
}

// verified returns a verifier that has checked the stream so far. A verifier that has refused a
// chunk cannot be used further.
func (g *generator) verified() *agui.Verifier {
	v := new(agui.Verifier)
	for _, e := range g.events {
		_ = v.Check(e) // succeeds again
	}
	return v
}

// add appends an event if the verifier accepts it.
func (g *generator) add(e agui.Event) bool {
	if g.verified().Check(e) != nil {
		return false
	}
	g.events = append(g.events, e)
	return true
}

// encoded encodes events.
func encoded(t *testing.T, events []agui.Event) []json.RawMessage {
	t.Helper()
	var stream []json.RawMessage
	for _, e := range events {
		raw, err := agui.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, raw)
	}
	return stream
}

// closing returns the event that ends an open item.
func closing(i agui.OpenItem) agui.Event {
	switch i.Type {
	case agui.EventTextMessageStart:
		return &agui.TextMessageEnd{MessageID: i.ID}
	case agui.EventToolCallStart:
		return &agui.ToolCallEnd{ToolCallID: i.ID}
	case agui.EventReasoningStart:
		return &agui.ReasoningEnd{MessageID: i.ID}
	case agui.EventReasoningMessageStart:
		return &agui.ReasoningMessageEnd{MessageID: i.ID}
	case agui.EventStepStarted:
		return &agui.StepFinished{StepName: i.ID, SubagentRunID: i.SubagentRunID}
	default:
		return &agui.SubagentFinished{SubagentRunID: i.ID}
	}
}
