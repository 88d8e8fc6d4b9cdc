package stream_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// output is what a concurrentSubagent writes.
type output int

// The outputs.
const (
	outputText           output = iota // a text
	outputTextAndCall                  // a text, and a tool call
	outputReasoningState               // reasoning, and a change of the state
	outputs                            // the number of outputs
)

// concurrentSubagent is one of several concurrent subagents, which write different outputs.
type concurrentSubagent struct {
	writes  output
	lane    stream.Lane
	step    int
	after   uint64
	attempt *stream.Attempt
	pieces  int
	output  *agui.Reducer
}

// place returns the place of the subagent's next record.
func (s *concurrentSubagent) place() stream.Place {
	return stream.Place{Run: run, Lane: s.lane, Step: fmt.Sprint(s.step), Execution: "e1", After: s.after}
}

// id returns the ID of the message or call of the current step.
func (s *concurrentSubagent) id() string { return fmt.Sprintf("%s-%d", s.lane, s.step) }

// next returns the attempt's next events, for one record.
func (s *concurrentSubagent) next() []agui.Event {
	s.pieces++
	id, text := s.id(), fmt.Sprintf("%d ", s.pieces)
	switch {
	case s.writes == outputReasoningState && s.pieces == 1:
		return []agui.Event{&agui.ReasoningStart{MessageID: id}, &agui.ReasoningMessageStart{MessageID: id}, &agui.ReasoningMessageContent{MessageID: id, Delta: text}}
	case s.writes == outputReasoningState && s.pieces == 2:
		return []agui.Event{&agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/` + id + `","value":1}]`)}}
	case s.writes == outputReasoningState:
		return []agui.Event{&agui.ReasoningMessageContent{MessageID: id, Delta: text}}
	case s.pieces == 1:
		return []agui.Event{textStart(id), textContent(id, text)}
	case s.writes == outputTextAndCall && s.pieces == 2:
		return []agui.Event{textEnd(id), &agui.ToolCallStart{ToolCallID: id, ToolCallName: "f", ParentMessageID: id}, &agui.ToolCallArgs{ToolCallID: id, Delta: `{"a":`}}
	case s.writes == outputTextAndCall:
		return []agui.Event{&agui.ToolCallArgs{ToolCallID: id, Delta: text}}
	}
	return []agui.Event{textContent(id, text)}
}

// last returns the attempt's final events.
func (s *concurrentSubagent) last() []agui.Event {
	var events []agui.Event
	if s.pieces == 0 {
		events = s.next()
	}
	switch id := s.id(); {
	case s.writes == outputReasoningState:
		return append(events, &agui.ReasoningMessageEnd{MessageID: id}, &agui.ReasoningEnd{MessageID: id})
	case s.writes == outputTextAndCall && s.pieces > 1:
		return append(events, &agui.ToolCallEnd{ToolCallID: id})
	default:
		return append(events, textEnd(id))
	}
}

// wantEvents checks that events continue what the subagent has emitted.
func (s *concurrentSubagent) wantEvents(t *testing.T, events []agui.Event) {
	t.Helper()
	for _, e := range events {
		if _, state := e.(*agui.StateDelta); state {
			continue
		}
		if err := s.output.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

// writeScript writes a run. In the script a to j are its subagents:
//
//	a+  an attempt begins; an unfinished one before it is superseded
//	a   it emits its next events
//	a-  it is retracted before another attempt begins
//	a!  it finishes
func (f *projectionFixture) writeScript(script string) {
	f.t.Helper()
	f.begin(run, user, "")
	var subagents [10]concurrentSubagent
	for i := range subagents {
		subagents[i] = concurrentSubagent{writes: output(i) % outputs, lane: stream.LaneMain.Subagent(i)}
	}
	for _, word := range strings.Fields(script) {
		p := &subagents[word[0]-'a']
		switch word[1:] {
		case "+":
			p.attempt, p.pieces, p.output = f.attempt(p.place()), 0, agui.NewReducer(nil, nil)
		case "":
			events := p.next()
			p.wantEvents(f.t, events)
			before := f.last()
			if err := p.attempt.Emit(f.ctx, events...); err != nil {
				f.t.Fatal(err)
			}
			f.await(before)
		case "-":
			f.supersede(p.place(), false)
			p.step, p.after = p.step+1, f.last()
		case "!":
			events := p.last()
			p.wantEvents(f.t, events)
			p.after = f.finish(p.attempt, resultWith(p.output.Messages()...), events...)
			p.step++
		}
	}
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// randomScript returns a script with superseded and retracted attempts.
func randomScript(r *rand.Rand, length int) string {
	const none, silent, speaking = 0, 1, 2
	var words []string
	var state [3]int
	for len(words) < length {
		i := r.IntN(3)
		name := string(rune('a' + i))
		switch roll := r.IntN(12); {
		case state[i] == none || roll < 2:
			words, state[i] = append(words, name+"+"), silent
		case roll == 2 && state[i] == speaking:
			words, state[i] = append(words, name+"-"), none
		case roll == 3:
			words, state[i] = append(words, name+"!"), none
		default:
			words, state[i] = append(words, name), speaking
		}
	}
	for i := range state {
		if state[i] != none {
			words = append(words, string(rune('a'+i))+"!")
		}
	}
	return strings.Join(words, " ")
}

// readerChecks are readers of a finished run.
type readerChecks struct {
	t       *testing.T
	ctx     context.Context
	log     *stream.Log
	records []*stream.Record
	end     clientScreen
	cursors map[[sha256.Size]byte]string // by the hash of all events shown so far
}

// newReaderChecks writes the run of a script, and returns checks of its readers.
func newReaderChecks(t *testing.T, script string) *readerChecks {
	t.Helper()
	ctx, l := testContext(t), streamtest.Open(t)
	f := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	f.writeScript(script)
	end := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	return &readerChecks{
		t: t, ctx: ctx, log: l, records: must[[]*stream.Record](t)(l.ReadTo(ctx, run, 0)),
		end: clientScreen{end.Messages(), end.State}, cursors: map[[sha256.Size]byte]string{},
	}
}

// read returns the events of a reader that connects after the event, or at the start if it is nil,
// when the log has the given number of records. The reader stays connected.
func (a *readerChecks) read(after *view.Frame, has int) []view.Frame {
	a.t.Helper()
	var from *stream.Cursor
	if after != nil {
		c := must[stream.Cursor](a.t)(a.log.ParseCursor(after.Cursor.String()))
		from = &c
	}
	reader := view.NewProjection(snapshots(a.log), run, "", from, a.records[:has])
	var frames []view.Frame
	for _, rec := range a.records {
		frames = append(frames, must[[]view.Frame](a.t)(reader.Add(a.ctx, rec))...)
	}
	return frames
}

// recordsBefore returns how many records the log must have for an event to be shown.
func (a *readerChecks) recordsBefore(f view.Frame) int {
	return 1 + slices.IndexFunc(a.records, func(r *stream.Record) bool { return r.Seq == f.Cursor.Seq })
}

// checkReconnects checks that a reader that disconnects after an event, and reconnects while the
// log has the same records, is shown the remaining events with the same cursors.
func (a *readerChecks) checkReconnects(what string, frames []view.Frame, has int) {
	a.t.Helper()
	for k := range frames {
		if a.recordsBefore(frames[k]) > has {
			break
		}
		if rest := a.read(&frames[k], has); formatFrames(rest) != formatFrames(frames[k+1:]) {
			a.t.Fatalf("%s, disconnected after event %d:\n%s\ngot\n%s\nwant\n%s", what, k, frames[k].Cursor, formatFrames(rest), formatFrames(frames[k+1:]))
		}
	}
}

// checkEqualCursors checks that events have the same cursors for all readers that were shown the
// same events up to there.
func (a *readerChecks) checkEqualCursors(what string, frames []view.Frame) {
	a.t.Helper()
	var shown [sha256.Size]byte
	for i, f := range frames {
		shown = sha256.Sum256(fmt.Appendf(shown[:], "%v %s", f.Cursor.Position, f.Event))
		text := f.Cursor.String()
		if others, ok := a.cursors[shown]; ok && others != text {
			a.t.Fatalf("%s: cursor of event %d: got %s, want %s as for other readers\n%s", what, i, text, others, formatFrames(frames))
		}
		a.cursors[shown] = text
	}
}

// checkFinalState checks that the reference client accepts the events and ends with the messages
// and the state of the log. The order of concurrent messages is not checked.
func (a *readerChecks) checkFinalState(what string, frames []view.Frame) {
	a.t.Helper()
	a.checkEqualCursors(what, frames)
	inOrder := func(messages []agui.Message) string {
		return asJSON(a.t, slices.SortedFunc(slices.Values(messages), func(m, n agui.Message) int { return strings.Compare(m.ID, n.ID) }))
	}
	checkCursors(a.t, what, frames)
	got := applyFrames(a.t, what, []agui.Message{user}, frames, false)
	if inOrder(got.messages) != inOrder(a.end.messages) {
		a.t.Fatalf("%s: messages: got\n%s\nwant\n%s\n%s", what, inOrder(got.messages), inOrder(a.end.messages), formatFrames(frames))
	}
}

// TestCursorsAreEqualForAllReaders: an event has the same cursor for all readers that
// were shown the same events, wherever they reconnected: for readers after the end, and for readers
// that were shown a part of a superseded attempt.
func TestCursorsAreEqualForAllReaders(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"two lanes":                             "a+ a b+ b a b a+ b a b a! b b!",
		"two lanes, both die":                   "a+ a b+ b a b b+ a b a+ a b a! b b!",
		"the later attempt is superseded first": "a+ a b+ b a a b+ b a a+ a b! a!",
		"three lanes":                           "a+ a b+ b c+ c a b c a c b b+ a c b a+ c a b c+ a c b a! b! c!",
		"three lanes, one lives":                "a+ b+ c+ a b c a b c a+ c a b c b+ a b c a! b! c c!",
		"two deaths of one lane":                "a+ a b+ b a a+ a b a a+ b a b a! b!",
		"two deaths of each":                    "a+ b+ a b a b a+ a b b+ b a a b a+ b a b+ a b a! b!",
		"a death and no attempt for long":       "a+ a b+ b a b a- b b b a+ b a a! b!",
		"silent attempts":                       "a+ a b+ b a+ a+ b a b b+ b+ a b a! b!",
		"a lane that is used again":             "a+ b+ a b a! b a+ a b a a+ b a b+ a! b b!",
		"deaths one right after the other":      "a+ b+ c+ a b c a b c c+ b+ a+ a b c a! b! c!",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newReaderChecks(t, script)
			all := len(a.records)
			late := a.read(nil, all)
			a.checkFinalState("late", late)
			a.checkReconnects("late", late, all)
			live := a.read(nil, 0)
			a.checkFinalState("live", live)
			for k := range live {
				rest := a.read(&live[k], all)
				what := fmt.Sprintf("disconnected live after event %d, back at the end", k)
				a.checkFinalState(what, slices.Concat(live[:k+1], rest))
				a.checkReconnects(what, rest, all)
			}
		})
	}
}

// TestRandomCutsAndDeadAttempts: the same holds for random scripts and for readers that reconnect
// several times.
func TestRandomCutsAndDeadAttempts(t *testing.T) {
	t.Parallel()
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			script := randomScript(r, 40)
			a := newReaderChecks(t, script)
			all := len(a.records)
			for range 4 {
				has := r.IntN(all + 1)
				what := fmt.Sprintf("%s\nconnected at record %d", script, has)
				var before []view.Frame
				rest := a.read(nil, has)
				for len(rest) > 0 {
					a.checkFinalState(what, slices.Concat(before, rest))
					a.checkReconnects(what, rest, has)
					k := r.IntN(len(rest))
					least := max(has, a.recordsBefore(rest[k]))
					has = least + r.IntN(all-least+1)
					what += fmt.Sprintf(", disconnected after event %d, back at record %d", len(before)+k, has)
					before = append(before, rest[:k+1]...)
					rest = a.read(&before[len(before)-1], has)
				}
			}
		})
	}
}

// attemptEnds returns the records by which attempts were superseded, in the order of the log.
func (a *readerChecks) attemptEnds() (at []int) {
	begun := map[string]bool{}
	for i, r := range a.records {
		if r.Kind == stream.KindAttempt {
			if key := string(r.Lane) + r.Step; begun[key] {
				at = append(at, i)
			} else {
				begun[key] = true
			}
		}
	}
	return at
}

// TestDisconnectsInSuccessiveAttempts: readers that disconnected at different places of
// superseded attempts are shown exactly the events of each attempt that they lack.
func TestDisconnectsInSuccessiveAttempts(t *testing.T) {
	t.Parallel()
	a := newReaderChecks(t, "a+ a b+ b c+ a b c a b c a b c a+ c b c b+ a b a! b! c c!")
	live, died := a.read(nil, 0), a.attemptEnds()
	index := slices.IndexFunc(live, func(f view.Frame) bool { return f.Type == agui.EventTextMessageContent })
	first := a.read(&live[index], died[0]+1) // after the first attempt was superseded, and before the second was
	most := 0
	for k := range first {
		before, rest := slices.Concat(live[:index+1], first[:k+1]), a.read(&first[k], len(a.records))
		what := fmt.Sprintf("disconnected after event %d of the second connection", k)
		a.checkFinalState(what, slices.Concat(before, rest))
		a.checkReconnects(what, rest, len(a.records))
		for _, f := range rest {
			most = max(most, len(f.Cursor.ShownParts))
		}
	}
	if most != 2 {
		t.Errorf("shown parts in a cursor: got at most %d, want 2", most)
	}
}

// TestRetractionsHaveReasons: before the snapshot of each retraction, a reader is told whether
// another attempt follows.
func TestRetractionsHaveReasons(t *testing.T) {
	t.Parallel()
	frames := newReaderChecks(t, "a+ a a+ a! b+ b b-").read(nil, 0)
	var reasons []string
	for i, f := range frames {
		if f.Type != agui.EventCustom {
			continue
		}
		reasons = append(reasons, string(f.Event))
		wantEqual(t, "type of the next event", frames[i+1].Type, agui.EventMessagesSnapshot)
	}
	wantEqual(t, "retractions", reasons, []string{
		`{"type":"CUSTOM","name":"perdure.retracted","value":{"reason":"retry"}}`,
		`{"type":"CUSTOM","name":"perdure.retracted","value":{"reason":"failed"}}`,
	})
}

// TestCursorsStaySmallOverDisconnects: cursors stay small, however often a reader disconnects in
// superseded attempts.
func TestCursorsStaySmallOverDisconnects(t *testing.T) {
	t.Parallel()
	var say, die, finish []string
	for _, name := range strings.Split("abcdefghij", "") {
		say, die, finish = append(say, name+"+", name, name), append(die, name+"+", name), append(finish, name+"!")
	}
	a := newReaderChecks(t, strings.Join(slices.Concat(say, die, finish), " "))
	frames, most := a.read(nil, 0), 0
	for i, died := range a.attemptEnds() {
		index := slices.IndexFunc(frames, func(f view.Frame) bool { return strings.Contains(string(f.Event), fmt.Sprintf(`"s%d-0"`, i)) })
		frames = a.read(&frames[index], died+1)
		for _, f := range frames {
			most = max(most, len(f.Cursor.ShownParts))
		}
	}
	if most != 8 {
		t.Errorf("shown parts in a cursor: got at most %d, want 8", most)
	}
}

// TestCursorsHavePositionsOfDeadAttempts: for each superseded attempt a cursor has the position
// of the last event that the reader was shown of it, and no position if the reader was shown none.
func TestCursorsHavePositionsOfDeadAttempts(t *testing.T) {
	t.Parallel()
	a := newReaderChecks(t, "a+ a b+ b c+ c a b c a+ c b+ c a b a! b! c!")
	live, died := a.read(nil, 0), a.attemptEnds()
	seq := func(death int) uint64 { return a.records[died[death]].Seq }
	shown := func(lane int) (at stream.Position) { // the position of the attempt's last event before the first one was superseded
		for _, f := range live {
			if f.Cursor.Seq < seq(0) && strings.Contains(string(f.Event), fmt.Sprintf(`"s%d-0"`, lane)) && (at.Seq == 0 || at.Seq == f.Cursor.Seq) {
				at = f.Cursor.Position
			}
		}
		return at
	}
	unseen := func(frames []view.Frame) (all [][]stream.ShownPart) {
		for _, f := range frames {
			if n := len(all); n == 0 || !slices.Equal(all[n-1], f.Cursor.ShownParts) {
				all = append(all, f.Cursor.ShownParts)
			}
		}
		return all
	}
	late := unseen(a.read(nil, len(a.records)))
	if diff := cmp.Diff([][]stream.ShownPart{nil, {{SupersededAt: seq(1)}}, nil}, late); diff != "" {
		t.Errorf("late reader (-want +got):\n%s", diff)
	}
	last := slices.IndexFunc(live, func(f view.Frame) bool { return f.Cursor.Position == shown(1) })
	both := stream.ShownPart{Shown: shown(1), SupersededAt: seq(1)} // also for the first attempt: no more of it was shown before
	part := unseen(a.read(&live[last], len(a.records)))
	if diff := cmp.Diff([][]stream.ShownPart{nil, {both}, {{Shown: shown(0), SupersededAt: seq(0)}, both}, {both}, nil}, part); diff != "" {
		t.Errorf("reader that was shown a part of each attempt (-want +got):\n%s", diff)
	}
}

// TestOlderCursorsOfDeadAttempts: cursors in the older format stay valid. Their position is the
// last event before the reader disconnected, instead of the last event of the attempt.
func TestOlderCursorsOfDeadAttempts(t *testing.T) {
	t.Parallel()
	a := newReaderChecks(t, "a+ a b+ b a b a a+ b a b a! b b!")
	for what, has := range map[string]int{"late": len(a.records), "live": 0} {
		frames := a.read(nil, has)
		var last stream.Position // the position of the last event before the first cursor with an unseen position
		count := 0
		for k, f := range frames {
			if f.Cursor.ShownParts == nil {
				last = f.Cursor.Position
				continue
			}
			count++
			f.Cursor.ShownParts = []stream.ShownPart{{Shown: last, SupersededAt: f.Cursor.ShownParts[0].SupersededAt}}
			if rest := a.read(&f, len(a.records)); formatFrames(rest) != formatFrames(frames[k+1:]) {
				t.Errorf("%s, disconnected after event %d:\n%s\ngot\n%s\nwant\n%s", what, k, f.Cursor, formatFrames(rest), formatFrames(frames[k+1:]))
			}
		}
		if count == 0 {
			t.Errorf("%s: number of cursors with shown parts = %v, want at least 1", what, count)
		}
	}
}

// TestCutAtAbandonedRun: the end of an abandoned run is shown with the beginning of the next
// run. A reader that disconnects there continues exactly.
func TestCutAtAbandonedRun(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*projectionFixture){"three runs": (*projectionFixture).writeThread, "an abandoned run": (*projectionFixture).writeAbandonedRun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			tell(&projectionFixture{t: t, ctx: ctx, log: l, step: func() {}})
			follower := streamtest.Follow(t, l)
			read := func(after stream.Cursor) []view.Frame {
				shownView := viewer(follower).Thread(thread, view.ThreadOptions{After: &after})
				defer shownView.Close()
				return must[[]view.Frame](t)(readToEnd(ctx, shownView))
			}
			want := read(l.CursorAt(1))
			for k, f := range want {
				if rest := read(f.Cursor); formatFrames(rest) != formatFrames(want[k+1:]) {
					t.Fatalf("disconnected after event %d:\n%s\ngot\n%s\nwant\n%s", k, f.Cursor, formatFrames(rest), formatFrames(want[k+1:]))
				}
			}
		})
	}
}
