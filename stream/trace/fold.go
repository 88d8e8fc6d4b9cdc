package trace

import (
	"context"
	"errors"
	"path"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Fold makes a trace of the records of a run. It takes the records of all segments of the run, in
// the order of the log. One goroutine uses it. The zero value is not usable: see NewFold.
type Fold struct {
	log       *stream.Log
	snapshots *snapshot.Store
	thread    stream.Thread

	run   Run
	usage []runs.Usage // of the calls that have ended
	root  *node
	nodes []*node
	// changed are the spans for Changed.
	changed         []*node
	lastIDSeq       uint64 // of begin
	lastIDIndex     int
	last            uint64 // sequence of the last record
	opened          uint64 // sequence of the opening of the segment
	isSealed        bool
	cancelRequested bool
	withdrawnBytes  int
	agents          map[stream.Lane]*agent
	units           map[stream.Lane]*unit
	calls           map[string]*call   // by tool call ID
	interrupts      map[string]*node   // by interrupt ID
	before          *snapshot.Snapshot // the conversation with which the segment began; nil = not read
	subagents       map[string]*node   // subagents and branches by subagentRunId
}

// NewFold returns the fold of a run without records. store is of the same log: a run that continues
// another one reads the names of that run's tool calls from it.
func NewFold(store *snapshot.Store, run stream.Run) *Fold {
	return &Fold{
		log: store.Log(), snapshots: store, thread: run.Thread,
		run:    Run{ThreadID: run.Thread.ID, RunID: run.Shown(), Status: StatusRunning},
		agents: map[stream.Lane]*agent{}, units: map[stream.Lane]*unit{}, calls: map[string]*call{}, interrupts: map[string]*node{},
		subagents: map[string]*node{},
	}
}

// Last returns the sequence of the last record that was added; 0 = none.
func (f *Fold) Last() uint64 { return f.last }

// HasBegun reports whether the run has its first record.
func (f *Fold) HasBegun() bool { return f.root != nil }

// HasEnded reports whether the last segment of the run has its terminal record.
func (f *Fold) HasEnded() bool { return f.isSealed }

// spanBytes is about how many bytes a span takes.
const spanBytes = 512

// Size returns about how many bytes the trace takes.
func (f *Fold) Size() int { return spanBytes*len(f.nodes) + f.withdrawnBytes }

// Usage returns the usage of the model calls that have ended, with one entry for each model.
func (f *Fold) Usage() []runs.Usage { return f.usage }

// Add adds the next record of the run. Records that were added before are ignored. The error is one
// of the log, or a record that cannot be decoded.
func (f *Fold) Add(ctx context.Context, rec *stream.Record) error {
	if rec.Seq <= f.last || rec.Lane.IsInternal() {
		return nil
	}
	f.last = rec.Seq
	switch {
	case rec.OpensRun():
		return f.openRun(ctx, rec)
	case f.root == nil:
		return nil
	case rec.Kind == stream.KindAudit:
		return f.addAudit(ctx, rec)
	case f.isSealed:
		return nil
	}
	switch rec.Kind {
	case stream.KindOpen, stream.KindBegin:
		return f.addOpen(ctx, rec)
	case stream.KindAttempt:
		return f.addAttempt(ctx, rec)
	case stream.KindEvents:
		return f.addEvents(ctx, rec)
	case stream.KindDone:
		return f.addDone(ctx, rec)
	case stream.KindSupersede:
		return f.addSupersede(ctx, rec)
	case stream.KindTerminal:
		return f.addTerminal(ctx, rec)
	case stream.KindCancel:
		f.cancelRequested = true
	}
	return nil
}

// openRun begins the run, or a further segment of it.
func (f *Fold) openRun(ctx context.Context, rec *stream.Record) error {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return err
	}
	if f.root == nil {
		f.root = f.begin(rec, rec.Time, nil, KindRun, o.Agent)
		f.root.span.Agent = o.Agent
		f.run.StartedAt, f.run.Agent, f.run.Revision = milliseconds(rec.Time), o.Agent, o.Revision
		f.run.Continues, f.run.Event = stream.ShownRunID(o.Continues), o.Event
	} else {
		f.reopen(f.root)
	}
	f.run.Status, f.run.Outcome, f.run.EndedAt, f.run.Error = StatusRunning, "", nil, nil
	f.opened, f.isSealed, f.cancelRequested = rec.Seq, false, false
	f.agents = map[stream.Lane]*agent{stream.LaneMain: {node: f.root}}
	f.units = map[stream.Lane]*unit{}
	f.before = nil
	return f.addOpen(ctx, rec)
}

// addOpen adds the lifecycle events of a step, and its first attempt if the record begins it.
func (f *Fold) addOpen(ctx context.Context, rec *stream.Record) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	for _, raw := range events {
		if agui.TypeOf(raw) != agui.EventSubagentStarted {
			continue
		}
		e, err := decodeAs[*agui.SubagentStarted](raw)
		if err != nil {
			return err
		}
		f.beginSubagent(rec, e)
	}
	interrupts, clientCalls, err := stream.ParseHeld(events)
	if err != nil {
		return err
	}
	f.beginInterrupts(rec, interrupts, clientCalls)
	if !rec.Lane.IsAgentLane() {
		return nil
	}
	a := f.agentOn(rec.Lane)
	f.endWait(a, rec)
	if path.Base(rec.Step) == stepModel {
		_, err = f.beginUnit(ctx, rec)
	}
	if err == nil && rec.Kind == stream.KindBegin {
		err = f.beginAttempt(ctx, rec)
	}
	return err
}

// addTerminal ends the run.
func (f *Fold) addTerminal(ctx context.Context, rec *stream.Record) error {
	last, err := rec.LastEvent(ctx)
	if err != nil {
		return err
	}
	at := milliseconds(rec.Time)
	f.isSealed = true
	f.run.EndedAt = &at
	var metadata agui.Metadata
	switch e := last.(type) {
	case *agui.RunError:
		f.run.Status, f.run.Outcome, f.run.Error = StatusFailed, snapshot.OutcomeError, newError(e.Code, e.Message, "")
		f.run.Usage, metadata = e.Usage, e.Metadata
	case *agui.RunFinished:
		f.run.Status, f.run.Outcome = StatusFinished, string(agui.OutcomeSuccess)
		f.run.Usage, metadata = e.Usage, e.Metadata
		if e.Outcome == nil {
			break
		}
		f.run.Outcome = string(e.Outcome.Type)
		switch {
		case e.Outcome.Type == agui.OutcomeCancelled:
			f.run.Status = StatusCancelled
		case len(e.Outcome.Interrupts)+len(e.Outcome.PendingToolCallIDs) > 0:
			f.run.Status = StatusWaiting
		}
		f.beginInterrupts(rec, e.Outcome.Interrupts, e.Outcome.PendingToolCallIDs)
	default:
		return errors.New("trace: the terminal record has no event of a run's end")
	}
	f.run.Cost = costIn(metadata)
	if err := f.closeUnits(ctx, rec); err != nil {
		return err
	}
	f.closeSpans(rec)
	f.touch(f.root, rec)
	f.root.span.Error, f.root.span.Cost = f.run.Error, f.run.Cost
	f.end(f.root, rec.Time, f.run.Status)
	return nil
}

// closeSpans ends the spans that are open at the end of the run, the innermost first. Interrupts of
// a run that waits stay open, and the spans around them wait.
func (f *Fold) closeSpans(rec *stream.Record) {
	waits := map[*node]bool{}
	for _, n := range f.nodes {
		if n.isOpen() && n.span.Status == StatusWaiting && f.run.Status == StatusWaiting {
			waits[n] = true
			for p := n.parent; p != nil; p = p.parent {
				waits[p] = true
			}
		}
	}
	for _, a := range f.agents {
		if !waits[a.turn] {
			f.closeTurn(a, rec.Time)
		}
	}
	for i := len(f.nodes) - 1; i > 0; i-- {
		n := f.nodes[i]
		switch {
		case !n.isOpen(), n.span.Kind == KindInterrupt && waits[n]:
		case waits[n]:
			f.end(n, rec.Time, StatusWaiting)
		case f.run.Status == StatusWaiting:
			f.end(n, rec.Time, StatusFinished)
		default:
			f.end(n, rec.Time, f.run.Status)
		}
	}
}

// Trace returns the trace as of the last record.
func (f *Fold) Trace() *Trace {
	t := &Trace{Run: f.Run(), Spans: make([]Span, 0, len(f.nodes))}
	for _, n := range f.nodes {
		t.Spans = append(t.Spans, f.export(n))
		n.isChanged = false
	}
	f.changed = nil
	return t
}

// Changed returns the spans that began or changed since the last call of Changed or Trace, in the
// order of the changes.
func (f *Fold) Changed() []Span {
	spans := make([]Span, 0, len(f.changed))
	for _, n := range f.changed {
		spans = append(spans, f.export(n))
		n.isChanged = false
	}
	f.changed = nil
	return spans
}

// Run returns the run as of the last record.
func (f *Fold) Run() Run {
	r := f.run
	r.Cursor = f.log.CursorAt(f.last).String()
	if r.EndedAt == nil {
		for _, u := range f.usage {
			r.Usage = append(r.Usage, tokenUsage(u))
		}
		if cost, known := runs.Cost(f.usage); known {
			r.Cost = &Cost{Amount: agents.Money(cost)}
		}
	}
	return r
}
