package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// fold reduces record after record.
type fold struct {
	log       *stream.Log
	r         Snapshot
	proposals map[uint64]*stream.Record
	last      uint64 // sequence of the thread's last record before the one that is added
}

func newFold(l *stream.Log, base *Snapshot) *fold {
	f := &fold{log: l, r: *base, proposals: map[uint64]*stream.Record{}, last: base.Seq}
	f.r.Entries = slices.Clip(f.r.Entries)
	f.r.Pending = slices.Clone(f.r.Pending)
	if len(f.r.Journal.Changes) == 0 {
		f.r.Journal.Settled = f.r.State
	}
	f.r.Journal.Changes = slices.Clone(f.r.Journal.Changes)
	return f
}

// snapshot is the result. The fold must not be used afterwards.
func (f *fold) snapshot(seq uint64) *Snapshot {
	f.r.Seq = seq
	f.r.Entries = slices.Clip(f.r.Entries) // it is immutable from here on, and so is what lies behind it
	j := &f.r.Journal
	f.r.State = applyChanges(j.Settled, j.Changes, change.finished)
	if len(j.Changes) == 0 {
		*j = journal{} // what is settled is the state
	}
	return &f.r
}

func (f *fold) add(ctx context.Context, rec *stream.Record) error {
	defer func() { f.last = rec.Seq }()
	f.r.behind += rec.Weight()
	switch {
	case rec.Kind == stream.KindProposal:
		f.proposals[rec.Seq] = rec
		return nil
	case rec.Kind == stream.KindFork:
		return f.fork(ctx, rec)
	case rec.OpensRun():
		return f.open(ctx, rec)
	case rec.RunToken() != f.r.Run || f.r.Sealed:
		return nil // a run that is over: nothing behind its end counts
	}
	f.r.Active = rec.Time
	switch rec.Kind {
	case stream.KindOpen:
		if err := f.hold(ctx, rec); err != nil {
			return err
		}
		return f.steer(ctx, rec)
	case stream.KindTerminal:
		f.r.Sealed = true
		f.abandon(func(stream.Lane) bool { return true })
		return f.end(ctx, rec)
	case stream.KindMark:
		f.r.Mark = rec.Seq
	case stream.KindAttempt:
		f.abandon(rec.Lane.Equals)
	case stream.KindEvents:
		return f.share(ctx, rec)
	case stream.KindDone:
		if err := errors.Join(f.share(ctx, rec), f.leave(ctx, rec)); err != nil {
			return err
		}
		return f.done(ctx, rec)
	case stream.KindSupersede:
		if rec.HasResult() {
			return f.done(ctx, rec)
		}
		f.abandon(rec.Lane.Equals)
	}
	return nil
}

// share takes in what an attempt changed of what lanes share.
func (f *fold) share(ctx context.Context, rec *stream.Record) error {
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
				f.keepPlace(rec, e)
			} else {
				f.r.Pending = notice(f.r.Pending, len(f.r.Entries), rec, e)
			}
		}
	}
	return nil
}

// abandon takes out what open attempts changed in some lanes.
func (f *fold) abandon(in func(stream.Lane) bool) {
	f.r.Journal.drop(in)
	f.r.Pending = slices.DeleteFunc(f.r.Pending, func(p Pending) bool { return in(p.Lane) })
}

// settle makes what the attempt on a lane changed part of the thread, at its place.
func (f *fold) settle(lane stream.Lane) {
	f.r.Journal.finish(lane)
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

func (f *fold) open(ctx context.Context, rec *stream.Record) error {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return err
	}
	f.abandon(func(stream.Lane) bool { return true })
	if len(f.r.Interrupts)+len(f.r.Waits) > 0 {
		f.r.Answered, f.r.Decided = f.r.Interrupts, nil
	}
	f.r.Waits, f.r.Interrupts, f.r.Mark = nil, nil, 0
	f.r.Run, f.r.RunID, f.r.Execution, f.r.Sealed, f.r.Opened, f.r.Cut = rec.RunToken(), o.RunID, o.Execution, false, rec.Seq, nil
	f.askedFor(o.Agent)
	f.began(rec, &o)
	if o.Input == 0 { // nobody asked for this run: it goes on with what is there
		return nil
	}
	in, err := f.input(ctx, o.Input)
	if err != nil {
		return err
	}
	a := o.Accepted
	a.Tail, a.Updated = in.Accepted.Tail, in.Accepted.Updated
	if a.Cut {
		f.r.Cut = cutMessages(f.r.Entries[min(a.Keep, len(f.r.Entries)):])
	}
	before := f.r.Entries
	f.r.Entries = f.r.Apply(a)
	f.addedAt(rec.Seq, a.Keep)
	f.supersede(rec.Seq, before)
	f.move(&o)
	f.r.Input, f.r.Context, f.r.Tools = o.Input, len(in.Input.Context) > 0, len(in.Input.Tools) > 0
	f.r.Journal.Settled = stateOn(in, f.r.Journal.Settled, o.Keeps)
	return nil
}

// addedAt notes for the messages after the kept ones that they joined the thread with a record, if they are new.
func (f *fold) addedAt(seq uint64, keep int) {
	for i := keep; i < len(f.r.Entries); i++ {
		if f.r.Entries[i].Since == 0 {
			f.r.Entries[i].Since = seq
		}
	}
}

// cutMessages lists what is cut of what clients keep when a snapshot lacks it.
func cutMessages(cut []Entry) []CutMessage {
	var messages []CutMessage
	for _, e := range cut {
		if m := e.Message; m.Role == agui.RoleReasoning && !e.Hidden() || m.Role == agui.RoleActivity {
			messages = append(messages, CutMessage{ID: m.ID, Role: m.Role, ActivityType: m.ActivityType})
		}
	}
	return messages
}

// end notes what a run has ended with that its client is to answer.
func (f *fold) end(ctx context.Context, rec *stream.Record) error {
	last, err := rec.LastEvent(ctx)
	if err != nil {
		return err
	}
	before := f.r.Interrupts
	f.r.Waits, f.r.Interrupts = nil, nil
	if finished, ok := last.(*agui.RunFinished); ok && finished.Outcome != nil {
		f.r.Waits, f.r.Interrupts = finished.Outcome.PendingToolCallIDs, finished.Outcome.Interrupts
	}
	if len(f.r.Interrupts) > 0 { // what was answered before, while the run went on, is carried out by the next
		for _, q := range before {
			if !slices.ContainsFunc(f.r.Interrupts, func(open agui.Interrupt) bool { return open.ID == q.ID }) {
				f.answered(q)
			}
		}
	}
	return f.ended(ctx, rec, last)
}

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

func (f *fold) done(ctx context.Context, rec *stream.Record) error {
	var res stream.Result
	if err := rec.Result(ctx, &res); err != nil {
		return err
	}
	f.settle(rec.Lane)
	if res.Decided != nil {
		f.decided(*res.Decided)
		f.answer(*res.Decided)
	}
	if res.Handoff != nil {
		f.hand(*res.Handoff)
	}
	if res.Summary != nil {
		f.summarize(rec.Seq, *res.Summary)
	}
	for id, arguments := range res.Edited {
		f.edit(id, arguments)
	}
	for _, m := range res.Messages {
		at := f.find(m.ID)
		if m.Role == agui.RoleActivity && at >= 0 { // settled, where it began
			if rec.Lane == stream.LaneMain {
				f.moveBehind(at)
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
		if at >= 0 && isPlace(f.r.Entries[at].Message) {
			f.r.Entries[at] = e // settled just now, so nobody else has seen the list with it
		} else {
			f.insert(e)
		}
	}
	if rec.Lane.Subagents() { // places of what nobody said, which are new in the list: it is ours
		f.r.Entries = slices.DeleteFunc(f.r.Entries, func(e Entry) bool { return isPlace(e.Message) })
	}
	return nil
}

// maxRemembered bounds what is remembered on a thread: the oldest is forgotten, and asked for again.
const maxRemembered = 256

// decided takes in what was decided about a call.
func (f *fold) decided(d stream.Decided) {
	f.r.Decided = append(slices.Clip(f.r.Decided[max(0, len(f.r.Decided)+1-maxAnswered):]), d)
	if d.Remembered == nil || slices.Contains(f.r.Remembered, *d.Remembered) {
		return
	}
	kept := f.r.Remembered[max(0, len(f.r.Remembered)+1-maxRemembered):]
	f.r.Remembered = append(slices.Clip(kept), *d.Remembered)
}

// edit puts the arguments with which a call was really made in the place of the model's.
func (f *fold) edit(callID, arguments string) {
	for i := len(f.r.Entries) - 1; i >= 0; i-- {
		e := f.r.Entries[i]
		at := slices.IndexFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == callID })
		if at < 0 {
			continue
		}
		e.Message.ToolCalls = slices.Clone(e.Message.ToolCalls)
		e.Message.ToolCalls[at].Arguments = arguments
		f.r.Entries = slices.Clone(f.r.Entries) // others hold the list as it was
		f.r.Entries[i] = e
		return
	}
}

func (f *fold) find(id string) int {
	return slices.IndexFunc(f.r.Entries, func(e Entry) bool { return e.Message.ID == id })
}

// moveBehind puts an activity of the main lane behind what its step has said before it: it is settled
// in front of all that the step says.
func (f *fold) moveBehind(i int) {
	e := f.r.Entries[i] // what the fold began with stays as it is: it may be somebody else's
	f.r.Entries = slices.Concat(f.r.Entries[:i], f.r.Entries[i+1:], []Entry{e})
}

// insert adds a message where clients put it: a tool's behind the message with its call and the
// results already there, any other at the end.
func (f *fold) insert(e Entry) {
	f.supplant(e)
	at, ok := f.behindCall(e.Message)
	if !ok {
		f.r.Entries = append(f.r.Entries, e)
		return
	}
	if slices.ContainsFunc(f.r.Entries[at:], func(e Entry) bool { return e.Message.SubagentRunID != "" }) {
		f.moved(at) // those who have what subagents have said so far would put the result behind it
	}
	f.r.Entries = slices.Insert(f.r.Entries, at, e)
	for i := range f.r.Pending {
		if f.r.Pending[i].At >= at {
			f.r.Pending[i].At++
		}
	}
}

// supplant takes out what a client has sent of its own as the result of a call that now has one.
func (f *fold) supplant(e Entry) {
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

func (f *fold) behindCall(m agui.Message) (at int, ok bool) {
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

func calls(m agui.Message, toolCallID string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == toolCallID })
}

// move notes that a run's input changed what stands behind a message: it cut that, or put it behind what
// had come while its client was away.
func (f *fold) move(o *stream.Opening) {
	unmoved := o.Accepted.Keep
	late := o.Accepted.Differs && o.Said > 0
	if late {
		unmoved = min(unmoved, o.SaidBehind)
	}
	if !late && !o.Accepted.Cut {
		return
	}
	f.moved(unmoved)
}

// moved notes that no more than so many messages at the beginning never stood anywhere else.
func (f *fold) moved(unmoved int) {
	if !f.r.Moved || unmoved < f.r.Unmoved {
		f.r.Unmoved = unmoved
	}
	f.r.Moved = true
}
