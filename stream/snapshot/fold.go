package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// folder adds the records of a thread, in the order of the log, to a snapshot. No other code
// decides what a record means for the conversation; models, the API and readers use its results. It
// is used by one goroutine, for one result.
//
// Lists in the base are shared with other snapshots. So the fold never writes to an element of a
// list that it has not cloned, and appends only to clipped lists.
type folder struct {
	log         *stream.Log
	thread      stream.Thread
	snap        Snapshot
	proposals   map[uint64]*stream.Record // that this folder has seen, by sequence: inputs need not be read again
	previousSeq uint64                    // sequence of the record before the one that is added
}

// newFolder begins with a snapshot of a thread, which it does not change: it copies or clips the
// lists that it may change.
func newFolder(l *stream.Log, t stream.Thread, base *Snapshot) *folder {
	f := &folder{log: l, thread: t, snap: *base, proposals: map[uint64]*stream.Record{}, previousSeq: base.Seq}
	f.snap.Entries = slices.Clip(f.snap.Entries)
	f.snap.Pending = slices.Clone(f.snap.Pending)
	if len(f.snap.Journal.Changes) == 0 { // snapshot has emptied the journal
		f.snap.Journal.Committed, f.snap.Journal.ByAgents = f.snap.State, f.snap.ByAgents
	}
	f.snap.Journal.Changes = slices.Clone(f.snap.Journal.Changes)
	return f
}

// snapshot returns the result as of a sequence, which is at least that of the last added record.
// The fold must not be used afterwards.
func (f *folder) snapshot(seq uint64) *Snapshot {
	f.snap.Seq = seq
	f.snap.Entries = slices.Clip(f.snap.Entries) // a later fold then appends to a copy
	j := &f.snap.Journal
	f.snap.State = applyChanges(j.Committed, j.Changes, change.isCommitted)
	f.snap.ByAgents = applyToAgentState(j.ByAgents, j.Changes, change.isCommitted)
	if len(j.Changes) == 0 {
		*j = journal{} // the committed state is the state
	}
	return &f.snap
}

// add adds the next record. It ignores records of runs that are sealed, and of runs other than the
// last one: a workflow that was terminated from outside may have written them.
func (f *folder) add(ctx context.Context, rec *stream.Record) error {
	defer func() { f.previousSeq = rec.Seq }()
	f.snap.sinceCheckpoint += rec.SizeWithResult()
	if rec.Kind == stream.KindCancel {
		f.snap.LastCancel = rec.Seq
	}
	switch {
	case rec.Kind == stream.KindProposal:
		f.proposals[rec.Seq] = rec
		return nil
	case rec.Lane == stream.LaneTitle: // the title is in the index only
		return nil
	case rec.Kind == stream.KindFork:
		return f.beginFork(ctx, rec)
	case rec.OpensRun():
		return f.openRun(ctx, rec)
	case rec.RunToken() != f.snap.Run || f.snap.Sealed:
		return nil // the run is sealed: later records of it do not count
	}
	f.snap.Active = rec.Time
	switch rec.Kind {
	case stream.KindOpen, stream.KindBegin:
		if rec.Kind == stream.KindBegin {
			f.dropLane(rec.Lane)
		}
		if err := f.addHeld(ctx, rec); err != nil {
			return err
		}
		return f.addSteering(ctx, rec)
	case stream.KindTerminal:
		f.snap.Sealed = true
		f.dropPending(func(stream.Lane) bool { return true }) // unfinished attempts leave nothing
		return f.closeRun(ctx, rec)
	case stream.KindMark:
		f.snap.Mark = rec.Seq
	case stream.KindAttempt: // supersedes the lane's unfinished attempt
		f.dropLane(rec.Lane)
		f.noteToolAttempt(rec)
	case stream.KindEvents:
		return f.addShared(ctx, rec)
	case stream.KindDone:
		f.noteToolAttempt(rec)
		if err := errors.Join(f.addShared(ctx, rec), f.dropEndedSubagents(ctx, rec)); err != nil {
			return err
		}
		return f.addResult(ctx, rec)
	case stream.KindSupersede:
		if rec.HasResult() { // the unfinished attempt's messages are kept, without its predictions
			f.snap.Journal.drop(func(l stream.Lane) bool { return l == rec.Lane })
			return f.addResult(ctx, rec)
		}
		f.dropLane(rec.Lane)
	}
	return nil
}

// addShared adds the changes of a record that concern several lanes: of the state, of activities,
// and the beginnings of messages of subagents. They are pending until their attempt finishes.
func (f *folder) addShared(ctx context.Context, rec *stream.Record) error {
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
			f.snap.Journal.Changes = append(f.snap.Journal.Changes, change{Lane: rec.Lane, Writer: rec.Writer, Event: raw})
		case rec.Lane.Shares(t):
			e, err := agui.Decode(raw)
			if err != nil {
				return err
			}
			if rec.Lane.Begins(t) {
				f.addPlaceholder(rec, e)
			} else {
				f.snap.Pending = applyActivity(f.snap.Pending, len(f.snap.Entries), rec, e)
			}
		}
	}
	return nil
}

// dropPending removes the pending changes of the open attempts on some lanes, which were
// superseded.
func (f *folder) dropPending(in func(stream.Lane) bool) {
	f.snap.Journal.drop(in)
	f.snap.Pending = slices.DeleteFunc(f.snap.Pending, func(p Pending) bool { return in(p.Lane) })
}

// dropLane is dropPending for one lane.
func (f *folder) dropLane(lane stream.Lane) {
	f.dropPending(func(l stream.Lane) bool { return l == lane })
}

// commitLane makes the pending changes of the attempt on a lane part of the thread, at their places
// in the order of the log. inserted shifts the places of the pending messages after each inserted
// one.
func (f *folder) commitLane(lane stream.Lane) {
	f.snap.Journal.commit(lane)
	var remaining []Pending
	inserted := 0
	for _, p := range f.snap.Pending {
		p.At += inserted
		if p.Lane != lane {
			remaining = append(remaining, p)
			continue
		}
		f.snap.Entries = slices.Insert(f.snap.Entries, p.At, Entry{Message: p.Message, Since: f.snap.Opened})
		inserted++
	}
	f.snap.Pending = remaining
}

// openRun begins the next run, with the conversation and the state that its input was accepted
// with. A continuation has no input, and begins with those of the run before. Changes of attempts
// that the run before has not finished are dropped.
func (f *folder) openRun(ctx context.Context, rec *stream.Record) error {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return err
	}
	f.dropPending(func(stream.Lane) bool { return true })
	if len(f.snap.Interrupts)+len(f.snap.ClientCalls) > 0 {
		f.snap.Answered, f.snap.Decided = f.snap.Interrupts, nil
	}
	f.snap.ClientCalls, f.snap.Interrupts, f.snap.Mark = nil, nil, 0
	f.snap.Run, f.snap.RunID, f.snap.Execution = rec.RunToken(), o.RunID, o.Execution
	f.snap.Sealed, f.snap.Opened, f.snap.Cut = false, rec.Seq, nil
	f.snap.Begun, f.snap.Restored = nil, false
	f.addTenantAgents(stream.AgentRevision{Agent: o.Agent, Revision: o.Revision})
	f.endHandoff(o.Agent)
	f.addRun(rec, &o)
	if o.Input == 0 { // a continuation has no input
		return nil
	}
	in, err := f.readInput(ctx, o.Input)
	if err != nil {
		return err
	}
	a := o.Accepted
	a.Tail, a.Updated = in.Accepted.Tail, in.Accepted.Updated // the opening has no content
	if a.Cut {
		f.snap.Cut = cutMessages(f.snap.Entries[min(a.Keep, len(f.snap.Entries)):])
	}
	before := f.snap.Entries
	f.snap.Entries = f.snap.Apply(a)
	f.setSince(rec.Seq, a.Keep)
	f.noteSuperseded(rec.Seq, before)
	f.noteMove(&o)
	f.addInputContributors(in)
	f.snap.Input, f.snap.Context, f.snap.Tools = o.Input, len(in.Input.Context) > 0, len(in.Input.Tools) > 0
	f.snap.Requester = in.Requester
	j := &f.snap.Journal
	initial := initialState(in, j.Committed, o.Keeps)
	j.ByAgents = afterInput(j.ByAgents, j.Committed, initial)
	j.Committed = initial
	return nil
}

// setSince sets Since of the new messages after the kept ones to the sequence of a record.
func (f *folder) setSince(seq uint64, keep int) {
	for i := keep; i < len(f.snap.Entries); i++ {
		if f.snap.Entries[i].Since == 0 {
			f.snap.Entries[i].Since = seq
		}
	}
}

// cutMessages returns the reasoning and the activities among the cut messages: clients keep these
// if a snapshot lacks them.
func cutMessages(cut []Entry) []CutMessage {
	var messages []CutMessage
	for _, e := range cut {
		if m, ok := e.Shown(); ok && (m.Role == agui.RoleReasoning || m.Role == agui.RoleActivity) {
			messages = append(messages, CutMessage{ID: m.ID, Role: m.Role, ActivityType: m.ActivityType})
		}
	}
	return messages
}

// closeRun adds how a run ended: its interrupts, client tool calls, outcome and usage. Interrupts
// of a held run that the end does not repeat were resolved while it was held. A run that was
// cancelled or failed leaves no call without a result.
func (f *folder) closeRun(ctx context.Context, rec *stream.Record) error {
	last, err := rec.LastEvent(ctx)
	if err != nil {
		return err
	}
	before := f.snap.Interrupts
	f.snap.ClientCalls, f.snap.Interrupts = nil, nil
	if finished, ok := last.(*agui.RunFinished); ok && finished.Outcome != nil {
		f.snap.ClientCalls, f.snap.Interrupts = finished.Outcome.PendingToolCallIDs, finished.Outcome.Interrupts
	}
	if len(f.snap.Interrupts) > 0 { // the next run carries out what was resolved while this one was held
		for _, i := range before {
			if !slices.ContainsFunc(f.snap.Interrupts, func(open agui.Interrupt) bool { return open.ID == i.ID }) {
				f.addAnswered(i)
			}
		}
	}
	if ClosesCalls(last) {
		f.closeCalls(rec)
	}
	return f.endRun(ctx, rec, last)
}

// addResult adds the result of a finished step, or of an unfinished one whose messages were kept.
// It commits the lane's pending changes first, so that a message replaces its placeholder.
func (f *folder) addResult(ctx context.Context, rec *stream.Record) error {
	var res stream.Result
	if err := rec.Result(ctx, &res); err != nil {
		return err
	}
	f.commitLane(rec.Lane)
	f.addTenantAgents(res.TenantAgents...)
	if res.Decided != nil {
		if err := f.addDecider(ctx, *res.Decided); err != nil {
			return err
		}
		f.addDecision(*res.Decided)
		f.resolveInterrupt(*res.Decided)
	}
	if res.Handoff != nil {
		f.addHandoff(*res.Handoff)
	}
	if res.Remote != nil {
		f.noteRemoteRun(rec.Seq, res.Remote)
	}
	if res.Summary != nil {
		f.addSummary(rec.Seq, *res.Summary)
	}
	for id, arguments := range res.Edited {
		f.editCall(id, arguments)
	}
	for _, id := range res.ShownCalls {
		f.showCall(id)
	}
	for _, m := range res.Messages {
		at := f.indexOf(m.ID)
		if m.Role == agui.RoleActivity && at >= 0 { // committed at its place
			if rec.Lane == stream.LaneMain {
				f.moveToEnd(at)
			}
			continue
		}
		e := Entry{Message: m, Scope: res.Scope, Visibility: res.Visibility, ShownCalls: shownCalls(m, res.ShownCalls), Since: f.snap.Opened}
		if len(m.ToolCalls) > 0 {
			e.ProviderIDs, e.Predicted = res.ProviderIDs, res.Predicted
		}
		if id, ok := res.ProviderIDs[m.ID]; ok {
			e.ProviderIDs = map[string]string{m.ID: id}
		}
		if m.Role == agui.RoleAssistant {
			f.dropPredicted(m.SubagentRunID)
		}
		if m.Role == agui.RoleReasoning {
			e.AnswerID = res.AnswerID()
		}
		if at >= 0 && isPlaceholder(f.snap.Entries[at].Message) {
			f.snap.Entries[at] = e // commitLane has just put the placeholder there, so the list is not shared
		} else {
			f.insert(e)
		}
	}
	f.addRepair(&res)
	if rec.Lane.IsSubagentLane() { // placeholders of messages that were not finished; the list is not shared
		f.snap.Entries = slices.DeleteFunc(f.snap.Entries, func(e Entry) bool { return isPlaceholder(e.Message) })
	}
	return nil
}

// dropPredicted drops the predictions of an agent's last message, because the agent continues.
// subagent is the agent's ID; "" = the run's own agent.
func (f *folder) dropPredicted(subagent string) {
	for i := len(f.snap.Entries) - 1; i >= 0; i-- {
		e := f.snap.Entries[i]
		if e.Message.Role != agui.RoleAssistant || e.Message.SubagentRunID != subagent {
			continue
		}
		if e.Predicted != nil {
			e.Predicted = nil
			f.snap.Entries = slices.Clone(f.snap.Entries) // other snapshots share the list
			f.snap.Entries[i] = e
		}
		return
	}
}

// maxRemembered bounds the remembered approvals of a thread. The oldest is forgotten: its tool
// needs an approval again.
const maxRemembered = 256

// addDecision adds a decision that was carried out, and the approval that it has the thread
// remember.
func (f *folder) addDecision(d stream.Decided) {
	f.snap.Decided = append(slices.Clip(f.snap.Decided[max(0, len(f.snap.Decided)+1-maxAnswered):]), d)
	if d.Remembered == nil || slices.Contains(f.snap.Remembered, *d.Remembered) {
		return
	}
	kept := f.snap.Remembered[max(0, len(f.snap.Remembered)+1-maxRemembered):]
	f.snap.Remembered = append(slices.Clip(kept), *d.Remembered)
}

// editCall replaces the arguments of a tool call by those that an approver has set. It looks from
// the end, and does nothing if the conversation does not have the call.
func (f *folder) editCall(callID, arguments string) {
	for i := len(f.snap.Entries) - 1; i >= 0; i-- {
		e := f.snap.Entries[i]
		at := slices.IndexFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == callID })
		if at < 0 {
			continue
		}
		e.Message.ToolCalls = slices.Clone(e.Message.ToolCalls)
		e.Message.ToolCalls[at].Arguments = arguments
		f.snap.Entries = slices.Clone(f.snap.Entries) // other snapshots share the list
		f.snap.Entries[i] = e
		return
	}
}

// showCall shows a tool call of a hidden message to clients. It looks from the end, and does
// nothing if the conversation does not have the call, or shows it.
func (f *folder) showCall(callID string) {
	for i, e := range slices.Backward(f.snap.Entries) {
		if !hasCall(e.Message, callID) {
			continue
		}
		if e.Visibility != stream.VisibleToAll && !slices.Contains(e.ShownCalls, callID) {
			e.ShownCalls = append(slices.Clip(e.ShownCalls), callID)
			f.snap.Entries = slices.Clone(f.snap.Entries) // other snapshots share the list
			f.snap.Entries[i] = e
		}
		return
	}
}

// shownCalls returns which of some calls a message has, or is the result of.
func shownCalls(m agui.Message, ids []string) (shown []string) {
	for _, id := range ids {
		if hasCall(m, id) || m.Role == agui.RoleTool && m.ToolCallID == id {
			shown = append(shown, id)
		}
	}
	return shown
}

// indexOf returns the position of a message; -1 = the conversation does not have it.
func (f *folder) indexOf(id string) int {
	return slices.IndexFunc(f.snap.Entries, func(e Entry) bool { return e.Message.ID == id })
}

// moveToEnd moves an activity of the main lane after the messages of its step: commitLane has put
// it before them, because they were not finished then.
func (f *folder) moveToEnd(i int) {
	e := f.snap.Entries[i] // the list is copied: the base shares it
	f.snap.Entries = slices.Concat(f.snap.Entries[:i], f.snap.Entries[i+1:], []Entry{e})
}

// insert adds a message where clients put it: a tool result after the message with its call and the
// results that follow that message, any other message at the end.
func (f *folder) insert(e Entry) {
	f.removeClientResult(e)
	at, ok := f.afterCall(e.Message)
	if !ok {
		f.snap.Entries = append(f.snap.Entries, e)
		return
	}
	if slices.ContainsFunc(f.snap.Entries[at:], func(e Entry) bool { return e.Message.SubagentRunID != "" }) {
		f.setUnmoved(at) // clients that have the subagent's messages would put the result after them
	}
	f.snap.Entries = slices.Insert(f.snap.Entries, at, e)
	for i := range f.snap.Pending {
		if f.snap.Pending[i].At >= at {
			f.snap.Pending[i].At++
		}
	}
}

// removeClientResult removes the result that a client sent for a call, if e is the server's own
// result of that call.
func (f *folder) removeClientResult(e Entry) {
	if e.Message.Role != agui.RoleTool || e.Sent != "" {
		return
	}
	i := slices.IndexFunc(f.snap.Entries, func(o Entry) bool {
		return o.Sent != "" && o.Message.Role == agui.RoleTool && o.Message.ToolCallID == e.Message.ToolCallID
	})
	if i < 0 {
		return
	}
	f.snap.Entries = slices.Concat(f.snap.Entries[:i], f.snap.Entries[i+1:])
	for j := range f.snap.Pending {
		if f.snap.Pending[j].At > i {
			f.snap.Pending[j].At--
		}
	}
}

// afterCall returns the position for a tool result: after the message with its call and the results
// that follow it. ok is false if m is not a tool result, or if the conversation lacks the call.
func (f *folder) afterCall(m agui.Message) (at int, ok bool) {
	if m.Role != agui.RoleTool {
		return 0, false
	}
	entries := f.snap.Entries
	for i := len(entries) - 1; i >= 0; i-- {
		if !hasCall(entries[i].Message, m.ToolCallID) {
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

// hasCall reports whether a message has a tool call.
func hasCall(m agui.Message, toolCallID string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == toolCallID })
}

// noteMove notes which messages a run's input moved: those that it cut, or those after the place up
// to which the client knew the conversation.
func (f *folder) noteMove(o *stream.Opening) {
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
func (f *folder) setUnmoved(unmoved int) {
	if !f.snap.Moved || unmoved < f.snap.Unmoved {
		f.snap.Unmoved = unmoved
	}
	f.snap.Moved = true
}
