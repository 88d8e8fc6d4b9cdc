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

// speaker is one of several subagents that speak at the same time: the first writes a text, the
// second a text and a call, the third thinks and changes the state, and so on.
type speaker struct {
	kind    int
	lane    stream.Lane
	step    int
	after   uint64
	attempt *stream.Attempt
	pieces  int
	said    *agui.Reducer
}

func (p *speaker) place() stream.Place {
	return stream.Place{Run: run, Lane: p.lane, Step: fmt.Sprint(p.step), Execution: "e1", After: p.after}
}

func (p *speaker) id() string { return fmt.Sprintf("%s-%d", p.lane, p.step) }

// next returns what the attempt says next, in one record.
func (p *speaker) next() []agui.Event {
	p.pieces++
	id, said := p.id(), fmt.Sprintf("%d ", p.pieces)
	switch {
	case p.kind == 2 && p.pieces == 1:
		return []agui.Event{&agui.ReasoningStart{MessageID: id}, &agui.ReasoningMessageStart{MessageID: id}, &agui.ReasoningMessageContent{MessageID: id, Delta: said}}
	case p.kind == 2 && p.pieces == 2:
		return []agui.Event{&agui.StateDelta{Delta: json.RawMessage(`[{"op":"add","path":"/` + id + `","value":1}]`)}}
	case p.kind == 2:
		return []agui.Event{&agui.ReasoningMessageContent{MessageID: id, Delta: said}}
	case p.pieces == 1:
		return []agui.Event{start(id), text(id, said)}
	case p.kind == 1 && p.pieces == 2:
		return []agui.Event{end(id), &agui.ToolCallStart{ToolCallID: id, ToolCallName: "f", ParentMessageID: id}, &agui.ToolCallArgs{ToolCallID: id, Delta: `{"a":`}}
	case p.kind == 1:
		return []agui.Event{&agui.ToolCallArgs{ToolCallID: id, Delta: said}}
	}
	return []agui.Event{text(id, said)}
}

// last returns what the attempt ends with.
func (p *speaker) last() []agui.Event {
	var events []agui.Event
	if p.pieces == 0 {
		events = p.next()
	}
	switch id := p.id(); {
	case p.kind == 2:
		return append(events, &agui.ReasoningMessageEnd{MessageID: id}, &agui.ReasoningEnd{MessageID: id})
	case p.kind == 1 && p.pieces > 1:
		return append(events, &agui.ToolCallEnd{ToolCallID: id})
	default:
		return append(events, end(id))
	}
}

func (p *speaker) says(t *testing.T, events []agui.Event) {
	t.Helper()
	for _, e := range events {
		if _, state := e.(*agui.StateDelta); state {
			continue
		}
		if err := p.said.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

// tellScript writes a run. In the script a to j are its speakers:
//
//	a+  an attempt begins, and the one before it, if it has not ended, dies
//	a   it says something
//	a-  it dies, and is withdrawn before another begins
//	a!  it finishes
func (s *projectionFixture) tellScript(script string) {
	s.t.Helper()
	s.begin(run, user, "")
	var speakers [10]speaker
	for i := range speakers {
		speakers[i] = speaker{kind: i % 3, lane: stream.LaneMain.Subagent(i)}
	}
	for _, word := range strings.Fields(script) {
		p := &speakers[word[0]-'a']
		switch word[1:] {
		case "+":
			p.attempt, p.pieces, p.said = s.attempt(p.place()), 0, agui.NewReducer(nil, nil)
		case "":
			events := p.next()
			p.says(s.t, events)
			before := s.last()
			if err := p.attempt.Emit(s.ctx, events...); err != nil {
				s.t.Fatal(err)
			}
			s.await(before)
		case "-":
			s.supersede(p.place(), false)
			p.step, p.after = p.step+1, s.last()
		case "!":
			events := p.last()
			p.says(s.t, events)
			p.after = s.finish(p.attempt, says(p.said.Messages()...), events...)
			p.step++
		}
	}
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// randomScript has deaths of all kinds in it.
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

// audience are readers of a run that has been told.
type audience struct {
	t       *testing.T
	ctx     context.Context
	log     *stream.Log
	records []*stream.Record
	end     screen
	cursors map[[sha256.Size]byte]string // by all that was shown up to there
}

func audienceOf(t *testing.T, script string) *audience {
	t.Helper()
	ctx, l := testContext(t), streamtest.Open(t)
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	s.tellScript(script)
	end := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	return &audience{
		t: t, ctx: ctx, log: l, records: must[[]*stream.Record](t)(l.ReadTo(ctx, run, 0)),
		end: screen{end.Messages(), end.State}, cursors: map[[sha256.Size]byte]string{},
	}
}

// read returns what a reader is shown who comes, behind an event or nil, when the log has so many
// records, and stays.
func (a *audience) read(behind *view.Frame, has int) []view.Frame {
	a.t.Helper()
	var from *stream.Cursor
	if behind != nil {
		c := must[stream.Cursor](a.t)(a.log.ParseCursor(behind.Cursor.String()))
		from = &c
	}
	reader := view.NewProjection(snapshots(a.log), run, "", from, a.records[:has])
	var frames []view.Frame
	for _, rec := range a.records {
		frames = append(frames, must[[]view.Frame](a.t)(reader.Add(a.ctx, rec))...)
	}
	return frames
}

// had tells how many records the log must have for an event to be shown.
func (a *audience) had(f view.Frame) int {
	return 1 + slices.IndexFunc(a.records, func(r *stream.Record) bool { return r.Seq == f.Cursor.Seq })
}

// exact checks that whoever is cut behind an event, and is back when the log has as many records as
// when the reader came, is shown what the reader is shown, with the same cursors.
func (a *audience) exact(what string, frames []view.Frame, has int) {
	a.t.Helper()
	for k := range frames {
		if a.had(frames[k]) > has {
			break
		}
		if rest := a.read(&frames[k], has); dump(rest) != dump(frames[k+1:]) {
			a.t.Fatalf("%s, cut behind event %d:\n%s\nis shown\n%s\ninstead of\n%s", what, k, frames[k].Cursor, dump(rest), dump(frames[k+1:]))
		}
	}
}

// alike checks that events have the cursors that they had for all others who had been shown the
// same up to there.
func (a *audience) alike(what string, frames []view.Frame) {
	a.t.Helper()
	var shown [sha256.Size]byte
	for i, f := range frames {
		shown = sha256.Sum256(fmt.Appendf(shown[:], "%v %s", f.Cursor.Position, f.Event))
		text := f.Cursor.String()
		if others, ok := a.cursors[shown]; ok && others != text {
			a.t.Fatalf("%s: event %d has the cursor %s, for others %s\n%s", what, i, text, others, dump(frames))
		}
		a.cursors[shown] = text
	}
}

// right checks that the reference client takes what it is shown, and ends with what the log has.
// The order of what was said at the same time says nothing.
func (a *audience) right(what string, frames []view.Frame) {
	a.t.Helper()
	a.alike(what, frames)
	inOrder := func(messages []agui.Message) string {
		return asJSON(a.t, slices.SortedFunc(slices.Values(messages), func(m, n agui.Message) int { return strings.Compare(m.ID, n.ID) }))
	}
	checkCursors(a.t, what, frames)
	got := show(a.t, what, []agui.Message{user}, frames, false)
	if inOrder(got.messages) != inOrder(a.end.messages) {
		a.t.Fatalf("%s ends with\n%s\ninstead of\n%s\n%s", what, inOrder(got.messages), inOrder(a.end.messages), dump(frames))
	}
}

// An event has the same cursor for all who were shown the same, wherever they were cut on the way:
// for those who came when all was over, and for those who had been shown a part of what died when
// they were cut.
func TestCursorsDoNotTellWhereTheirReadersWereCut(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"two lanes":                        "a+ a b+ b a b a+ b a b a! b b!",
		"two lanes, both die":              "a+ a b+ b a b b+ a b a+ a b a! b b!",
		"the one that began later first":   "a+ a b+ b a a b+ b a a+ a b! a!",
		"three lanes":                      "a+ a b+ b c+ c a b c a c b b+ a c b a+ c a b c+ a c b a! b! c!",
		"three lanes, one lives":           "a+ b+ c+ a b c a b c a+ c a b c b+ a b c a! b! c c!",
		"two deaths of one lane":           "a+ a b+ b a a+ a b a a+ b a b a! b!",
		"two deaths of each":               "a+ b+ a b a b a+ a b b+ b a a b a+ b a b+ a b a! b!",
		"a death and no attempt for long":  "a+ a b+ b a b a- b b b a+ b a a! b!",
		"silent attempts":                  "a+ a b+ b a+ a+ b a b b+ b+ a b a! b!",
		"a lane that is used again":        "a+ b+ a b a! b a+ a b a a+ b a b+ a! b b!",
		"deaths one right after the other": "a+ b+ c+ a b c a b c c+ b+ a+ a b c a! b! c!",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := audienceOf(t, script)
			all := len(a.records)
			late := a.read(nil, all)
			a.right("late", late)
			a.exact("late", late, all)
			live := a.read(nil, 0)
			a.right("live", live)
			for k := range live {
				rest := a.read(&live[k], all)
				what := fmt.Sprintf("cut live behind event %d, back at the end", k)
				a.right(what, slices.Concat(live[:k+1], rest))
				a.exact(what, rest, all)
			}
		})
	}
}

// The same holds for any story and for readers who are cut again and again.
func TestRandomCutsAndDeaths(t *testing.T) {
	t.Parallel()
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			script := randomScript(r, 40)
			a := audienceOf(t, script)
			all := len(a.records)
			for range 4 {
				has := r.IntN(all + 1)
				what := fmt.Sprintf("%s\nwho came at record %d", script, has)
				var before []view.Frame
				rest := a.read(nil, has)
				for len(rest) > 0 {
					a.right(what, slices.Concat(before, rest))
					a.exact(what, rest, has)
					k := r.IntN(len(rest))
					least := max(has, a.had(rest[k]))
					has = least + r.IntN(all-least+1)
					what += fmt.Sprintf(", was cut behind event %d, came back at record %d", len(before)+k, has)
					before = append(before, rest[:k+1]...)
					rest = a.read(&before[len(before)-1], has)
				}
			}
		})
	}
}

// deaths returns the records by which attempts died for others, in the order of the log.
func (a *audience) deaths() (at []int) {
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

// Readers who were cut at different places in what died since are shown of each attempt what they
// were not.
func TestReadersWhoAreCutInOneAttemptAfterTheOther(t *testing.T) {
	t.Parallel()
	a := audienceOf(t, "a+ a b+ b c+ a b c a b c a b c a+ c b c b+ a b a! b! c c!")
	live, died := a.read(nil, 0), a.deaths()
	said := slices.IndexFunc(live, func(f view.Frame) bool { return f.Type == agui.EventTextMessageContent })
	first := a.read(&live[said], died[0]+1) // when the first attempt has died, and the second has not
	most := 0
	for k := range first {
		before, rest := slices.Concat(live[:said+1], first[:k+1]), a.read(&first[k], len(a.records))
		what := fmt.Sprintf("cut behind event %d of what it came back to", k)
		a.right(what, slices.Concat(before, rest))
		a.exact(what, rest, len(a.records))
		for _, f := range rest {
			most = max(most, len(f.Cursor.Unseen))
		}
	}
	if most != 2 {
		t.Errorf("cursors tell of %d places, want 2", most)
	}
}

// However often a reader is cut in what died since, its cursors stay small.
func TestCursorsOfReadersWhoAreCutManyTimes(t *testing.T) {
	t.Parallel()
	var say, die, finish []string
	for _, name := range strings.Split("abcdefghij", "") {
		say, die, finish = append(say, name+"+", name, name), append(die, name+"+", name), append(finish, name+"!")
	}
	a := audienceOf(t, strings.Join(slices.Concat(say, die, finish), " "))
	frames, most := a.read(nil, 0), 0
	for i, died := range a.deaths() {
		said := slices.IndexFunc(frames, func(f view.Frame) bool { return strings.Contains(string(f.Event), fmt.Sprintf(`"s%d-0"`, i)) })
		frames = a.read(&frames[said], died+1)
		for _, f := range frames {
			most = max(most, len(f.Cursor.Unseen))
		}
	}
	if most != 8 {
		t.Errorf("a cursor tells of %d places, want 8 at most", most)
	}
}

// What cursors tell of attempts that died is where the reader was shown the last of them, and
// nothing where it was shown none.
func TestCursorsTellWhatWasShownOfDeadAttempts(t *testing.T) {
	t.Parallel()
	a := audienceOf(t, "a+ a b+ b c+ c a b c a+ c b+ c a b a! b! c!")
	live, died := a.read(nil, 0), a.deaths()
	seq := func(death int) uint64 { return a.records[died[death]].Seq }
	shown := func(lane int) (at stream.Position) { // of what the attempt has said at first, the last event
		for _, f := range live {
			if f.Cursor.Seq < seq(0) && strings.Contains(string(f.Event), fmt.Sprintf(`"s%d-0"`, lane)) && (at.Seq == 0 || at.Seq == f.Cursor.Seq) {
				at = f.Cursor.Position
			}
		}
		return at
	}
	told := func(frames []view.Frame) (told [][]stream.Unseen) {
		for _, f := range frames {
			if n := len(told); n == 0 || !slices.Equal(told[n-1], f.Cursor.Unseen) {
				told = append(told, f.Cursor.Unseen)
			}
		}
		return told
	}
	late := told(a.read(nil, len(a.records)))
	if diff := cmp.Diff([][]stream.Unseen{nil, {{SupersededAt: seq(1)}}, nil}, late); diff != "" {
		t.Errorf("to a late reader (-want +got):\n%s", diff)
	}
	behind := slices.IndexFunc(live, func(f view.Frame) bool { return f.Cursor.Position == shown(1) })
	both := stream.Unseen{Shown: shown(1), SupersededAt: seq(1)} // also of the first: no more of that was shown before
	part := told(a.read(&live[behind], len(a.records)))
	if diff := cmp.Diff([][]stream.Unseen{nil, {both}, {{Shown: shown(0), SupersededAt: seq(0)}, both}, {both}, nil}, part); diff != "" {
		t.Errorf("to one who was shown a part of each (-want +got):\n%s", diff)
	}
}

// Cursors are read that tell, as they once did, where the reader was cut or was shown something
// last, instead of what it was shown of the attempt.
func TestOlderCursorsOfDeadAttempts(t *testing.T) {
	t.Parallel()
	a := audienceOf(t, "a+ a b+ b a b a a+ b a b a! b b!")
	for what, has := range map[string]int{"late": len(a.records), "live": 0} {
		frames := a.read(nil, has)
		var last stream.Position // where a reader was cut, or was shown something last, before it was told
		told := 0
		for k, f := range frames {
			if f.Cursor.Unseen == nil {
				last = f.Cursor.Position
				continue
			}
			told++
			f.Cursor.Unseen = []stream.Unseen{{Shown: last, SupersededAt: f.Cursor.Unseen[0].SupersededAt}}
			if rest := a.read(&f, len(a.records)); dump(rest) != dump(frames[k+1:]) {
				t.Errorf("%s, cut behind event %d:\n%s\nis shown\n%s\ninstead of\n%s", what, k, f.Cursor, dump(rest), dump(frames[k+1:]))
			}
		}
		if told == 0 {
			t.Errorf("%s: no cursor tells of a dead attempt", what)
		}
	}
}

// The end of a run that was abandoned is shown with what begins the next one.
func TestCutWhereARunWasAbandoned(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*projectionFixture){"three runs": (*projectionFixture).tellThread, "an abandoned run": (*projectionFixture).tellAbandoned} {
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
			whole := read(l.CursorAt(1))
			for k, f := range whole {
				if rest := read(f.Cursor); dump(rest) != dump(whole[k+1:]) {
					t.Fatalf("cut behind event %d:\n%s\nis shown\n%s\ninstead of\n%s", k, f.Cursor, dump(rest), dump(whole[k+1:]))
				}
			}
		})
	}
}
