package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// fold adds the records of a thread, in the order of the log, to a snapshot. No other code
// decides what a record means for the conversation; models, the API and readers use its results. It
// is used by one goroutine, for one result.
//
// Lists in the base are shared with other snapshots. So the fold never writes to an element of a
// list that it has not cloned, and appends only to clipped lists.
type fold struct {
	log       *stream.Log
	r         Snapshot
	proposals map[uint64]*stream.Record // seen by this fold, by sequence: inputs need not be read again
	last      uint64                    // sequence of the record before the one that is added
}

// newFold begins with a snapshot, which it does not change: it copies or clips the lists that it
// may change.
func newFold(l *stream.Log, base *Snapshot) *fold {
	f := &fold{log: l, r: *base, proposals: map[uint64]*stream.Record{}, last: base.Seq}
	f.r.Entries = slices.Clip(f.r.Entries)
	f.r.Pending = slices.Clone(f.r.Pending)
	if len(f.r.Journal.Changes) == 0 { // snapshot has emptied the journal
		f.r.Journal.Committed = f.r.State
	}
	f.r.Journal.Changes = slices.Clone(f.r.Journal.Changes)
	return f
}

// snapshot returns the result as of a sequence, which is at least that of the last added record.
// The fold must not be used afterwards.
func (f *fold) snapshot(seq uint64) *Snapshot {
	f.r.Seq = seq
	f.r.Entries = slices.Clip(f.r.Entries) // a later fold then appends to a copy
	j := &f.r.Journal
	f.r.State = applyChanges(j.Committed, j.Changes, change.finished)
	if len(j.Changes) == 0 {
		*j = journal{} // the committed state is the state
	}
	return &f.r
}

// add adds the next record. It ignores records of runs that are sealed, and of runs other than the
// last one: a workflow that was terminated from outside may have written them.
func (f *fold) add(ctx context.Context, rec *stream.Record) error {
	defer func() { f.last = rec.Seq }()
	f.r.sinceCheckpoint += rec.Weight()
	switch {
	case rec.Kind == stream.KindProposal:
		f.proposals[rec.Seq] = rec
		return nil
	case rec.Kind == stream.KindFork:
		return f.fork(ctx, rec)
	case rec.OpensRun():
		return f.open(ctx, rec)
	case rec.RunToken() != f.r.Run || f.r.Sealed:
		return nil // the run is sealed: later records of it do not count
	}
	f.r.Active = rec.Time
	switch rec.Kind {
	case stream.KindOpen:
		if err := f.addHeld(ctx, rec); err != nil {
			return err
		}
		return f.steer(ctx, rec)
	case stream.KindTerminal:
		f.r.Sealed = true
		f.drop(func(stream.Lane) bool { return true }) // unfinished attempts leave nothing
		return f.closeRun(ctx, rec)
	case stream.KindMark:
		f.r.Mark = rec.Seq
	case stream.KindAttempt: // supersedes the lane's unfinished attempt
		f.drop(rec.Lane.Equals)
	case stream.KindEvents:
		return f.addShared(ctx, rec)
	case stream.KindDone:
		if err := errors.Join(f.addShared(ctx, rec), f.dropEndedSubagents(ctx, rec)); err != nil {
			return err
		}
		return f.done(ctx, rec)
	case stream.KindSupersede:
		if rec.HasResult() { // the unfinished attempt's messages are kept
			return f.done(ctx, rec)
		}
		f.drop(rec.Lane.Equals)
	}
	return nil
}

// addShared adds the changes of a record that concern several lanes: of the state, of activities,
// and the beginnings of messages of subagents. They are pending until their attempt finishes.
func (f *fold) addShared(ctx context.Context, rec *stream.Record) error {
	if !rec.Shared() {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	for _, raw := range events {
		switch t := agui.TypeOf(raw); {
		case t == agui.EventStateSnapshot, t == agui.EventStateDelta:
			f.r.Journal.Changes = append(f.r.Journal.Changes, change{Lane: rec.Lane, Writer: rec.Writer, Event: raw})
		case rec.Lane.Shares(t):
			e, err := agui.Decode(raw)
			if err != nil {
				return err
			}
			if rec.Lane.Begins(t) {
				f.addPlaceholder(rec, e)
			} else {
				f.r.Pending = applyActivity(f.r.Pending, len(f.r.Entries), rec, e)
			}
		}
	}
	return nil
}

// drop removes the pending changes of the open attempts on some lanes, which were superseded.
func (f *fold) drop(in func(stream.Lane) bool) {
	f.r.Journal.drop(in)
	f.r.Pending = slices.DeleteFunc(f.r.Pending, func(p Pending) bool { return in(p.Lane) })
}

// commit makes the pending changes of the attempt on a lane part of the thread, at their places in
// the order of the log. settled shifts the places of the pending messages after each inserted one.
func (f *fold) commit(lane stream.Lane) {
	f.r.Journal.commit(lane)
	var rest []Pending
	settled := 0
	for _, p := range f.r.Pending {
		p.At += settled
		if p.Lane != lane {
			rest = append(rest, p)
			continue
		}
		f.r.Entries = slices.Insert(f.r.Entries, p.At, Entry{Message: p.Message, Since: f.r.Opened})
		settled++
	}
	f.r.Pending = rest
}

// open begins the next run, with the conversation and the state that its input was accepted with. A
// continuation has no input, and begins with those of the run before. Changes of attempts that the
// run before has not finished are dropped.
func (f *fold) open(ctx context.Context, rec *stream.Record) error {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return err
	}
	f.drop(func(stream.Lane) bool { return true })
	if len(f.r.Interrupts)+len(f.r.ClientCalls) > 0 {
		f.r.Answered, f.r.Decided = f.r.Interrupts, nil
	}
	f.r.ClientCalls, f.r.Interrupts, f.r.Mark = nil, nil, 0
	f.r.Run, f.r.RunID, f.r.Execution, f.r.Sealed, f.r.Opened, f.r.Cut = rec.RunToken(), o.RunID, o.Execution, false, rec.Seq, nil
	f.endHandoff(o.Agent)
	f.addRun(rec, &o)
	if o.Input == 0 { // a continuation has no input
		return nil
	}
	in, err := f.input(ctx, o.Input)
	if err != nil {
		return err
	}
	a := o.Accepted
	a.Tail, a.Updated = in.Accepted.Tail, in.Accepted.Updated // the opening has no content
	if a.Cut {
		f.r.Cut = cutMessages(f.r.Entries[min(a.Keep, len(f.r.Entries)):])
	}
	before := f.r.Entries
	f.r.Entries = f.r.Apply(a)
	f.addedAt(rec.Seq, a.Keep)
	f.supersede(rec.Seq, before)
	f.noteMove(&o)
	f.r.Input, f.r.Context, f.r.Tools = o.Input, len(in.Input.Context) > 0, len(in.Input.Tools) > 0
	f.r.Journal.Committed = stateOn(in, f.r.Journal.Committed, o.Keeps)
	return nil
}

// addedAt sets Since of the new messages after the kept ones to the sequence of a record.
func (f *fold) addedAt(seq uint64, keep int) {
	for i := keep; i < len(f.r.Entries); i++ {
		if f.r.Entries[i].Since == 0 {
			f.r.Entries[i].Since = seq
		}
	}
}

// cutMessages returns the reasoning and the activities among the cut messages: clients keep these
// if a snapshot lacks them.
func cutMessages(cut []Entry) []CutMessage {
	var messages []CutMessage
	for _, e := range cut {
		if m := e.Message; m.Role == agui.RoleReasoning && !e.Hidden() || m.Role == agui.RoleActivity {
			messages = append(messages, CutMessage{ID: m.ID, Role: m.Role, ActivityType: m.ActivityType})
		}
	}
	return messages
}

// closeRun adds how a run ended: its interrupts, client tool calls, outcome and usage. Interrupts
// of a held run that the end does not repeat were resolved while it was held.
func (f *fold) closeRun(ctx context.Context, rec *stream.Record) error {
	last, err := rec.LastEvent(ctx)
	if err != nil {
		return err
	}
	before := f.r.Interrupts
	f.r.ClientCalls, f.r.Interrupts = nil, nil
	if finished, ok := last.(*agui.RunFinished); ok && finished.Outcome != nil {
		f.r.ClientCalls, f.r.Interrupts = finished.Outcome.PendingToolCallIDs, finished.Outcome.Interrupts
	}
	if len(f.r.Interrupts) > 0 { // the next run carries out what was resolved while this one was held
		for _, q := range before {
			if !slices.ContainsFunc(f.r.Interrupts, func(open agui.Interrupt) bool { return open.ID == q.ID }) {
				f.addAnswered(q)
			}
		}
	}
	return f.endRun(ctx, rec, last)
}

// input returns the proposed input with a sequence, from this fold's records or from the log.
func (f *fold) input(ctx context.Context, seq uint64) (*stream.Input, error) {
	rec := f.proposals[seq]
	if rec == nil {
		return f.log.Input(ctx, seq)
	}
	var in stream.Input
	if err := rec.Result(ctx, &in); err != nil {
		return nil, err
	}
	return &in, nil
}

// done adds the result of a finished step, or of an unfinished one whose messages were kept. It
// commits the lane's pending changes first, so that a message replaces its placeholder.
func (f *fold) done(ctx context.Context, rec *stream.Record) error {
	var res stream.Result
	if err := rec.Result(ctx, &res); err != nil {
		return err
	}
	f.commit(rec.Lane)
	if res.Decided != nil {
		f.decided(*res.Decided)
		f.resolve(*res.Decided)
	}
	if res.Handoff != nil {
		f.handOff(*res.Handoff)
	}
	if res.Summary != nil {
		f.summarize(rec.Seq, *res.Summary)
	}
	for id, arguments := range res.Edited {
		f.editCall(id, arguments)
	}
	for _, m := range res.Messages {
		at := f.indexOf(m.ID)
		if m.Role == agui.RoleActivity && at >= 0 { // committed at its place
			if rec.Lane == stream.LaneMain {
				f.moveToEnd(at)
			}
			continue
		}
		e := Entry{Message: m, Scope: res.Scope, Since: f.r.Opened}
		if len(m.ToolCalls) > 0 {
			e.ProviderIDs = res.ProviderIDs
		}
		if m.Role == agui.RoleReasoning {
			e.AnswerID = res.AnswerID()
		}
		if at >= 0 && isPlaceholder(f.r.Entries[at].Message) {
			f.r.Entries[at] = e // commit has just put the placeholder there, so the list is not shared
		} else {
			f.insert(e)
		}
	}
	if rec.Lane.IsSubagentLane() { // placeholders of messages that were not finished; the list is not shared
		f.r.Entries = slices.DeleteFunc(f.r.Entries, func(e Entry) bool { return isPlaceholder(e.Message) })
	}
	return nil
}

// maxRemembered bounds the remembered approvals of a thread. The oldest is forgotten: its tool
// needs an approval again.
const maxRemembered = 256

// decided adds a decision that was carried out, and the approval that it has the thread remember.
func (f *fold) decided(d stream.Decided) {
	f.r.Decided = append(slices.Clip(f.r.Decided[max(0, len(f.r.Decided)+1-maxAnswered):]), d)
	if d.Remembered == nil || slices.Contains(f.r.Remembered, *d.Remembered) {
		return
	}
	kept := f.r.Remembered[max(0, len(f.r.Remembered)+1-maxRemembered):]
	f.r.Remembered = append(slices.Clip(kept), *d.Remembered)
}

// editCall replaces the arguments of a tool call by those that an approver has set. It looks from
// the end, and does nothing if the conversation does not have the call.
func (f *fold) editCall(callID, arguments string) {
	for i := len(f.r.Entries) - 1; i >= 0; i-- {
		e := f.r.Entries[i]
		at := slices.IndexFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == callID })
		if at < 0 {
			continue
		}
		e.Message.ToolCalls = slices.Clone(e.Message.ToolCalls)
		e.Message.ToolCalls[at].Arguments = arguments
		f.r.Entries = slices.Clone(f.r.Entries) // other snapshots share the list
		f.r.Entries[i] = e
		return
	}
}

// indexOf returns the position of a message; -1 = the conversation does not have it.
func (f *fold) indexOf(id string) int {
	return slices.IndexFunc(f.r.Entries, func(e Entry) bool { return e.Message.ID == id })
}

// moveToEnd moves an activity of the main lane after the messages of its step: commit has put it
// before them, because they were not finished then.
func (f *fold) moveToEnd(i int) {
	e := f.r.Entries[i] // the list is copied: the base shares it
	f.r.Entries = slices.Concat(f.r.Entries[:i], f.r.Entries[i+1:], []Entry{e})
}

// insert adds a message where clients put it: a tool result after the message with its call and the
// results that follow that message, any other message at the end.
func (f *fold) insert(e Entry) {
	f.removeClientResult(e)
	at, ok := f.afterCall(e.Message)
	if !ok {
		f.r.Entries = append(f.r.Entries, e)
		return
	}
	if slices.ContainsFunc(f.r.Entries[at:], func(e Entry) bool { return e.Message.SubagentRunID != "" }) {
		f.setUnmoved(at) // clients that have the subagent's messages would put the result after them
	}
	f.r.Entries = slices.Insert(f.r.Entries, at, e)
	for i := range f.r.Pending {
		if f.r.Pending[i].At >= at {
			f.r.Pending[i].At++
		}
	}
}

// removeClientResult removes the result that a client sent for a call, if e is the server's own
// result of that call.
func (f *fold) removeClientResult(e Entry) {
	if e.Message.Role != agui.RoleTool || e.Sent != "" {
		return
	}
	i := slices.IndexFunc(f.r.Entries, func(o Entry) bool {
		return o.Sent != "" && o.Message.Role == agui.RoleTool && o.Message.ToolCallID == e.Message.ToolCallID
	})
	if i < 0 {
		return
	}
	f.r.Entries = slices.Concat(f.r.Entries[:i], f.r.Entries[i+1:])
	for j := range f.r.Pending {
		if f.r.Pending[j].At > i {
			f.r.Pending[j].At--
		}
	}
}

// afterCall returns the position for a tool result: after the message with its call and the results
// that follow it. ok is false if m is not a tool result, or if the conversation lacks the call.
func (f *fold) afterCall(m agui.Message) (at int, ok bool) {
	if m.Role != agui.RoleTool {
		return 0, false
	}
	entries := f.r.Entries
	for i := len(entries) - 1; i >= 0; i-- {
		if !calls(entries[i].Message, m.ToolCallID) {
			continue
		}
		at = i + 1
		for at < len(entries) && entries[at].Message.Role == agui.RoleTool {
			at++
		}
		return at, true
	}
	return 0, false
}

// calls reports whether a message has a tool call.
func calls(m agui.Message, toolCallID string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == toolCallID })
}

// noteMove notes which messages a run's input moved: those that it cut, or those after the place up
// to which the client knew the conversation.
func (f *fold) noteMove(o *stream.Opening) {
	unmoved := o.Accepted.Keep
	if o.Accepted.Moved {
		unmoved = min(unmoved, o.Accepted.Unmoved)
	}
	if !o.Accepted.Moved && !o.Accepted.Cut {
		return
	}
	f.setUnmoved(unmoved)
}

// setUnmoved notes that at most unmoved messages at the beginning have never moved.
func (f *fold) setUnmoved(unmoved int) {
	if !f.r.Moved || unmoved < f.r.Unmoved {
		f.r.Unmoved = unmoved
	}
	f.r.Moved = true
}

// addPlaceholder notes where a message of a subagent begins: clients have the message there,
// although it is finished later. It does nothing if the message is known, because a message may be
// opened again.
func (f *fold) addPlaceholder(rec *stream.Record, e agui.Event) {
	var id string
	switch e := e.(type) {
	case *agui.TextMessageStart:
		id = e.MessageID
	case *agui.ReasoningMessageStart:
		id = e.MessageID
	case *agui.ToolCallStart:
		id = e.ParentMessageID
	}
	known := slices.ContainsFunc(f.r.Pending, func(p Pending) bool { return p.Message.ID == id }) || f.indexOf(id) >= 0
	if id != "" && !known {
		f.r.Pending = append(f.r.Pending, Pending{At: len(f.r.Entries), Lane: rec.Lane, Writer: rec.Writer, Message: agui.Message{ID: id}})
	}
}
