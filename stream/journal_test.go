package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// randomWriter writes a run in which several lanes change the state and activities concurrently.
// Attempts die and finish at random.
type randomWriter struct {
	t        *testing.T
	ctx      context.Context
	log      *stream.Log
	random   *rand.Rand
	lanes    [4]randomLane
	sequence int
}

type randomLane struct {
	attempt *stream.Attempt
	step    int
	after   uint64
	calls   int             // results given
	shown   map[string]bool // activities
}

// last returns the sequence of the last record of the thread.
func (m *randomWriter) last() uint64 {
	return must[*snapshot.Snapshot](m.t)(snapshots(m.log).Latest(m.ctx, thread, 0)).Seq
}

// open begins the run. Its conversation has calls that the lanes may answer.
func (m *randomWriter) open() []agui.Message {
	called := agui.Message{ID: "a1", Role: agui.RoleAssistant}
	for i := range m.lanes {
		for n := range 3 {
			called.ToolCalls = append(called.ToolCalls, agui.ToolCall{ID: fmt.Sprintf("c%d-%d", i, n), Name: "f", Arguments: "{}"})
		}
	}
	messages := []agui.Message{user, called}
	in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &messages[0]}, {ID: "a1", Message: &messages[1]}}}}
	proposal := must[stream.Proposal](m.t)(m.log.ProposeInput(m.ctx, run, [32]byte{1}, in))
	must[uint64](m.t)(m.log.OpenStep(m.ctx, place("1/tools", 0), stream.Opening{RunID: run.ID, Input: proposal.Seq, ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}, &agui.StepStarted{StepName: "tools"}))
	return messages
}

// place returns the place of a lane's next record.
func (m *randomWriter) place(i int) stream.Place {
	lane := &m.lanes[i]
	return stream.Place{Run: run, Lane: stream.LaneMain.Tool(i), Step: fmt.Sprintf("%d/tools/%d", lane.step, i), Execution: "e1", After: lane.after}
}

// act begins or finishes an attempt of a random lane, or emits an event.
func (m *randomWriter) act() {
	i := m.random.IntN(len(m.lanes))
	lane := &m.lanes[i]
	switch roll := m.random.IntN(16); {
	case lane.attempt == nil || roll <= 1: // the first attempt, or one that takes over
		m.begin(i)
	case roll <= 3:
		m.finish(i)
	default:
		m.emit(i, m.event(i))
	}
}

// emit emits an event, and waits for its record.
func (m *randomWriter) emit(i int, e agui.Event) {
	before := m.last()
	if err := m.lanes[i].attempt.Emit(m.ctx, e); err != nil {
		m.t.Fatal(err)
	}
	for m.last() == before {
		if m.ctx.Err() != nil {
			m.t.Fatal(m.ctx.Err())
		}
	}
}

// begin begins an attempt of a lane.
func (m *randomWriter) begin(i int) {
	lane := &m.lanes[i]
	m.leave(lane)
	a, _, err := m.log.Begin(m.ctx, m.place(i))
	if err != nil {
		m.t.Fatal(err)
	}
	lane.attempt, lane.shown = a, map[string]bool{}
}

// leave closes the attempt of a lane.
func (m *randomWriter) leave(lane *randomLane) {
	if lane.attempt != nil {
		lane.attempt.Close()
		lane.attempt = nil
	}
}

// finish finishes the attempt of a lane, with a result of a call.
func (m *randomWriter) finish(i int) {
	lane := &m.lanes[i]
	result := &stream.Result{}
	events := []agui.Event{m.event(i)}
	if call := fmt.Sprintf("c%d-%d", i, lane.calls); lane.calls < 3 {
		answer := agui.Message{ID: "r" + call, Role: agui.RoleTool, ToolCallID: call, Content: agui.TextContent("done")}
		result.Messages = append(result.Messages, answer)
		events = append(events, &agui.ToolCallResult{MessageID: answer.ID, ToolCallID: call, Content: answer.Content, Role: agui.RoleTool})
	}
	lane.after = must[uint64](m.t)(lane.attempt.Finish(m.ctx, result, events...))
	m.leave(lane)
	lane.step++
	lane.calls++
}

// seal ends the run.
func (m *randomWriter) seal() {
	for i := range m.lanes {
		m.leave(&m.lanes[i])
	}
	if _, _, err := m.log.Seal(m.ctx, place("finish", 0), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		m.t.Fatal(err)
	}
}

// event returns a random event of a lane.
func (m *randomWriter) event(i int) agui.Event {
	m.sequence++
	id := fmt.Sprintf("act-%d-%d-%d", i, m.lanes[i].step, m.random.IntN(2))
	if m.lanes[i].shown[id] && m.random.IntN(3) > 0 {
		return &agui.ActivityDelta{MessageID: id, ActivityType: "plan", Patch: m.patch()}
	}
	switch m.random.IntN(16) {
	case 0:
		return &agui.StateSnapshot{Snapshot: json.RawMessage(fmt.Sprintf(`{"new":%d}`, m.sequence))}
	case 1, 2, 3, 4, 5:
		m.lanes[i].shown[id] = true
		return &agui.ActivitySnapshot{MessageID: id, ActivityType: []string{"plan", "progress"}[m.random.IntN(2)], Content: json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.sequence))}
	default:
		return &agui.StateDelta{Delta: m.patch()}
	}
}

// patch returns a patch that often depends on another one.
func (m *randomWriter) patch() json.RawMessage {
	return json.RawMessage(fmt.Sprintf([]string{
		`[{"op":"add","path":"/a","value":{"by":%d}}]`,
		`[{"op":"add","path":"/a/list","value":[%d]}]`,
		`[{"op":"add","path":"/a/list/-","value":%d}]`,
		`[{"op":"replace","path":"/n","value":%d}]`,
		`[{"op":"add","path":"/n","value":%d}]`,
		`[{"op":"add","path":"/b","value":%d},{"op":"remove","path":"/a"}]`,
	}[m.random.IntN(6)], m.sequence))
}

// referenceClient is a reference client that applies the events it is shown.
type referenceClient struct {
	verifier agui.Verifier
	reducer  *agui.Reducer
}

// show applies frames.
func (s *referenceClient) show(t *testing.T, frames []view.Frame) {
	t.Helper()
	for _, f := range frames {
		e := must[agui.Event](t)(agui.Decode(f.Event))
		if err := s.verifier.Check(e); err != nil {
			t.Fatalf("%s is refused: %v", f.Event, err)
		}
		if err := s.reducer.Apply(e); err != nil {
			t.Fatalf("%s: %v", f.Event, err)
		}
	}
}

// knownState is the state and the messages of a reader that was shown all events up to a record.
type knownState struct {
	seq             uint64
	state, messages string
}

// knownStateOf returns what a client knows of a snapshot.
func knownStateOf(t *testing.T, r *snapshot.Snapshot) knownState {
	t.Helper()
	return knownState{r.Seq, string(r.StateFor(nil)), asJSON(t, r.MessagesFor(nil))}
}

// wantState checks that the client knows what the log has.
func (s *referenceClient) wantState(t *testing.T, what string, log knownState) {
	t.Helper()
	if got := string(s.reducer.State()); got != log.state {
		t.Fatalf("%s at %d: state of the client: got %s, want %s", what, log.seq, got, log.state)
	}
	if got := asJSON(t, s.reducer.Messages()); got != log.messages {
		t.Fatalf("%s at %d: the client's messages differ from the log's (-log +client):\n%s", what, log.seq, cmp.Diff(log.messages, got))
	}
}

// TestReadersHaveStateOfSnapshot: at every record, and for readers that join or
// reconnect at any time, the reference client's state equals the snapshot of the log.
func TestReadersHaveStateOfSnapshot(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			m := &randomWriter{t: t, ctx: ctx, log: l, random: rand.New(rand.NewPCG(seed, 1))}
			messages := m.open()
			for range 36 {
				m.act()
			}
			m.seal()
			checkReaders(t, ctx, l, messages, m.random)
		})
	}
}

// TestReconnectAfterDeadAttempts: readers that reconnect are not shown attempts that
// died meanwhile, whichever died first.
func TestReconnectAfterDeadAttempts(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	m := &randomWriter{t: t, ctx: ctx, log: l, random: rand.New(rand.NewPCG(1, 1))}
	messages := m.open()
	set := func(name string) agui.Event {
		return &agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/` + name + `","value":1}]`)}
	}
	show := func(name string) agui.Event {
		return &agui.ActivitySnapshot{MessageID: name, ActivityType: "plan", Content: json.RawMessage(`{"step":1}`)}
	}
	for i := range 2 {
		m.begin(i)
		m.emit(i, set(fmt.Sprint("by", i)))
		m.emit(i, show(fmt.Sprint("of", i)))
	}
	m.begin(0)
	m.begin(1)
	m.emit(1, show("of1"))
	m.finish(1)
	m.seal()
	checkReaders(t, ctx, l, messages, m.random)
}

// checkReaders checks readers that join, leave and return at every record.
func checkReaders(t *testing.T, ctx context.Context, l *stream.Log, messages []agui.Message, random *rand.Rand) {
	t.Helper()
	records := must[[]*stream.Record](t)(l.ReadTo(ctx, run, 0))
	at := make([]knownState, len(records))
	base := &snapshot.Snapshot{State: json.RawMessage("{}")}
	for i, rec := range records {
		// Each fold starts from the data that a checkpoint stores.
		var kept snapshot.Snapshot
		if err := json.Unmarshal(must[[]byte](t)(json.Marshal(base)), &kept); err != nil {
			t.Fatal(err)
		}
		base = must[*snapshot.Snapshot](t)(snapshot.Fold(ctx, l, thread, &kept, rec))
		at[i] = knownStateOf(t, base)
	}
	whole := must[*snapshot.Snapshot](t)(snapshot.Fold(ctx, l, thread, &snapshot.Snapshot{State: json.RawMessage("{}")}, records...))
	if diff := cmp.Diff(asJSON(t, whole), asJSON(t, base)); diff != "" {
		t.Fatalf("snapshots differ (-at once +step by step):\n%s", diff)
	}
	wantEqual(t, "number of pending", len(base.Pending), 0)
	wantEqual(t, "number of changes", len(base.Journal.Changes), 0)

	fresh := func() *referenceClient { return &referenceClient{reducer: agui.NewReducer(messages, nil)} }
	live := fresh()
	reader := view.NewProjection(snapshots(l), run, "", nil, nil)
	var frames []view.Frame
	for i, rec := range records {
		more := must[[]view.Frame](t)(reader.Add(ctx, rec))
		frames = append(frames, more...)
		live.show(t, more)
		if rec.Kind != stream.KindProposal {
			live.wantState(t, "live reader", at[i])
		}
	}
	for now := 1; now < len(records); now++ { // after the proposal
		// now is the number of records when the reader joins.
		late := fresh()
		reader := view.NewProjection(snapshots(l), run, "", nil, records[:now+1])
		for i, rec := range records {
			late.show(t, must[[]view.Frame](t)(reader.Add(ctx, rec)))
			if i >= now {
				late.wantState(t, fmt.Sprintf("reader that joins at record %d", now), at[i])
			}
		}
	}
	pairs := random.Perm(len(frames) * len(records)) // the last event before the disconnect, and the record of the reconnect
	for _, pair := range pairs[:min(len(pairs), 150)] {
		cut, now := pair/len(records), pair%len(records)
		cursor := frames[cut].Cursor
		if records[now].Seq < cursor.Seq {
			continue
		}
		back := fresh()
		back.show(t, frames[:cut+1])
		reader := view.NewProjection(snapshots(l), run, "", &cursor, records[:now+1])
		for i, rec := range records {
			back.show(t, must[[]view.Frame](t)(reader.Add(ctx, rec)))
			if i >= now {
				back.wantState(t, fmt.Sprintf("reader disconnected after event %d, back at record %d", cut, now), at[i])
			}
		}
	}
}

// TestKeptStateIsShown: a client that sends no state, on a thread that has one, is shown the
// thread's state before changes of it.
func TestKeptStateIsShown(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	begin := func(id, state, keeps string) (stream.Run, *snapshot.Snapshot) {
		run := stream.Run{Thread: thread, ID: id}
		in := &stream.Input{Input: agui.RunAgentInput{State: json.RawMessage(state)}}
		p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{id[0]}, in))
		before := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, p.Seq))
		at := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
		at.After = must[uint64](t)(l.OpenStep(ctx, at, stream.Opening{RunID: id, Input: p.Seq, ProtocolVersion: "1.0", Keeps: keeps, StateKept: before.KeepsState(in, keeps)},
			&agui.RunStarted{ThreadID: thread.ID, RunID: id}))
		if _, _, err := l.Seal(ctx, at, &agui.RunFinished{ThreadID: thread.ID, RunID: id}); err != nil {
			t.Fatal(err)
		}
		return run, must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	}
	for _, c := range []struct{ id, sent, keptMember, wantState, wantShown string }{
		{"1", ``, "", `{}`, ""},
		{"2", `{"a":1}`, "", `{"a":1}`, ""},
		{"3", ` {} `, "", `{"a":1}`, `{"a":1}`},
		{"4", ``, "", `{"a":1}`, `{"a":1}`},
		{"5", `{"b":2}`, "", `{"b":2}`, ""},
		{"6", `{"b":3,"s":{"x":1}}`, "", `{"b":3,"s":{"x":1}}`, ""},
		{"7", `{"b":4}`, "s", `{"b":4,"s":{"x":1}}`, `{"b":4,"s":{"x":1}}`},
		{"8", `{"b":5,"s":{"y":2}}`, "s", `{"b":5,"s":{"x":1}}`, `{"b":5,"s":{"x":1}}`},
		{"9", `{"s": {"x": 1}, "b": 6}`, "s", `{"s":{"x":1},"b":6}`, ""},
		{"a", `[7]`, "s", `[7]`, ""},
		{"b", `{"s":8}`, "s", `{"s":8}`, ""}, // there was no member to keep
	} {
		run, after := begin(c.id, c.sent, c.keptMember)
		if string(after.State) != c.wantState {
			t.Errorf("run %s: state: got %s, want %s", c.id, after.State, c.wantState)
		}
		shownView := viewer(follower).Run(run, view.Options{})
		frames, _ := readOn(ctx, shownView)
		shownView.Close()
		shown := ""
		for _, f := range frames {
			if s, ok := must[agui.Event](t)(agui.Decode(f.Event)).(*agui.StateSnapshot); ok {
				shown = string(s.Snapshot)
			}
		}
		if shown != c.wantShown {
			t.Errorf("run %s: state shown to the client: got %q, want %q", c.id, shown, c.wantShown)
		}
	}
}

// TestOlderClientsKeepEmptyActivity: older clients keep an activity that a snapshot leaves
// out. The projection empties it instead.
func TestOlderClientsKeepEmptyActivity(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	m := &randomWriter{t: t, ctx: ctx, log: l, random: rand.New(rand.NewPCG(1, 1))}
	messages := m.open()
	m.begin(0)
	for _, step := range []string{`{"step":1}`, `{"step":2}`} {
		m.emit(0, &agui.ActivitySnapshot{MessageID: "x", ActivityType: "plan", Content: json.RawMessage(step)})
	}
	m.begin(0)
	for profile, want := range map[stream.Generation]string{stream.Generation0: "[{}]", stream.Generation1: "[]"} {
		s := &referenceClient{reducer: agui.NewReducer(messages, nil)}
		reader := view.NewProjection(snapshots(l), run, profile, nil, nil)
		for _, rec := range must[[]*stream.Record](t)(l.ReadTo(ctx, run, 0)) {
			s.show(t, must[[]view.Frame](t)(reader.Add(ctx, rec)))
		}
		contents := []json.RawMessage{}
		for _, m := range s.reducer.Messages()[len(messages):] {
			contents = append(contents, m.Content.Object())
		}
		if got := string(must[[]byte](t)(json.Marshal(contents))); got != want {
			t.Errorf("profile %q: remaining activities: got %s, want %s", profile, got, want)
		}
	}
	m.leave(&m.lanes[0])
}
