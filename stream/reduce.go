package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/perdure/perdure/agui"
)

// Opening is the note beside the first events of a run: who it is, and which conversation it has.
type Opening struct {
	RunID string `json:"run"`
	// Execution is the Temporal run id of the execution that began the run.
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// Input is the sequence of the accepted proposal, Digest that of its decoded content.
	Input  uint64 `json:"input"`
	Digest string `json:"digest"`
	// ProtocolVersion is what the client said it speaks; a first reader of the run is spoken to so.
	ProtocolVersion string     `json:"protocolVersion,omitempty"`
	Accepted        Acceptance `json:"accepted"` // without content: that is in the proposal
	// Said is how many messages the client has behind those that are kept.
	Said int `json:"said,omitempty"`
}

// Reduction is what the log of a thread says so far: its conversation and its state. It is
// immutable. A step counts when its done is read, so a superseded attempt leaves nothing; and since
// done holds finished messages, deltas are never looked at.
type Reduction struct {
	// Seq is the last record of the thread that is reduced here.
	Seq uint64 `json:"seq"`
	// Run is the token of the last run that began, Execution the one that began it; Sealed tells that
	// it has ended.
	Run       string          `json:"run,omitempty"`
	Execution string          `json:"execution,omitempty"`
	Sealed    bool            `json:"sealed,omitempty"`
	Entries   []Entry         `json:"entries,omitempty"`
	State     json.RawMessage `json:"state,omitempty"`

	behind int // bytes of records since the last checkpoint
}

// Messages returns the conversation.
func (r *Reduction) Messages() []agui.Message {
	messages := make([]agui.Message, len(r.Entries))
	for i, e := range r.Entries {
		messages[i] = e.Message
	}
	return messages
}

// emptyState is the state of a thread that nobody wrote to.
var emptyState = json.RawMessage("{}")

// Bounds on what lies behind the last checkpoint (log.md, reduction).
const (
	checkpointWithin = 1 << 20
	checkpointAtEnd  = 64 << 10
)

// Reduce returns the reduction of a thread, at least as new as the record after: the log lacking
// that is ErrLogLost.
func (l *Log) Reduce(ctx context.Context, t Thread, after uint64) (*Reduction, error) {
	last, err := l.last(ctx, l.threadSubject(t)+".>")
	if err != nil {
		return nil, err
	}
	if lastSeq(last) < after {
		return nil, fmt.Errorf("%w: thread %q ends at %d, not at %d", ErrLogLost, t.ID, lastSeq(last), after)
	}
	if last == nil {
		return &Reduction{State: emptyState}, nil
	}
	return l.ReduceTo(ctx, t, last.Seq)
}

// ReduceTo returns the reduction of a thread as of one of its records.
func (l *Log) ReduceTo(ctx context.Context, t Thread, seq uint64) (*Reduction, error) {
	base := l.reductions.base(ctx, l, t, seq)
	if base.Seq == seq {
		return base, nil
	}
	f := fold{log: l, r: *base, proposals: map[uint64]*Record{}}
	f.r.Entries = slices.Clip(f.r.Entries)
	for r, err := range l.records(ctx, l.threadSubject(t)+".>", base.Seq+1, seq) {
		if err != nil {
			return nil, err
		}
		if err := f.add(ctx, r); err != nil {
			return nil, err
		}
	}
	f.r.Seq = seq
	l.reductions.keep(t, &f.r)
	return &f.r, nil
}

// reduceBefore returns the reduction of a thread as of the record before one of its records.
func (l *Log) reduceBefore(ctx context.Context, t Thread, seq uint64) (*Reduction, error) {
	base := l.reductions.base(ctx, l, t, seq-1)
	f := fold{log: l, r: *base, proposals: map[uint64]*Record{}}
	f.r.Entries = slices.Clip(f.r.Entries)
	for r, err := range l.records(ctx, l.threadSubject(t)+".>", base.Seq+1, seq) {
		if err != nil {
			return nil, err
		}
		if r.Seq == seq {
			break
		}
		if err := f.add(ctx, r); err != nil {
			return nil, err
		}
	}
	return &f.r, nil
}

// fold reduces record after record.
type fold struct {
	log       *Log
	r         Reduction
	proposals map[uint64]*Record
}

func (f *fold) add(ctx context.Context, rec *Record) error {
	f.r.behind += rec.size
	switch {
	case rec.Kind == KindProposal:
		f.proposals[rec.Seq] = rec
		return nil
	case rec.Kind == KindOpen && rec.HasResult():
		return f.open(ctx, rec)
	case rec.run != f.r.Run || f.r.Sealed:
		return nil // a run that is over: nothing behind its end counts
	case rec.Kind == KindTerminal:
		f.r.Sealed = true
		return nil
	case (rec.Kind == KindDone || rec.Kind == KindSupersede) && rec.HasResult():
		return f.done(ctx, rec)
	}
	return nil
}

func (f *fold) open(ctx context.Context, rec *Record) error {
	var o Opening
	if err := rec.Result(ctx, &o); err != nil {
		return err
	}
	in, err := f.input(ctx, o.Input)
	if err != nil {
		return err
	}
	a := o.Accepted
	a.Tail = in.Accepted.Tail
	f.r.Entries = f.r.apply(a)
	f.r.Run, f.r.Execution, f.r.Sealed = rec.run, o.Execution, false
	if state := bytes.TrimSpace(in.Input.State); len(state) > 0 && !bytes.Equal(state, emptyState) {
		f.r.State = in.Input.State
	}
	return nil
}

func (f *fold) input(ctx context.Context, seq uint64) (*Input, error) {
	rec := f.proposals[seq]
	if rec == nil {
		var err error
		if rec, err = f.log.at(ctx, seq); err != nil {
			return nil, err
		}
	}
	if rec == nil {
		return nil, fmt.Errorf("%w: input %d", ErrLogLost, seq)
	}
	var in Input
	if err := rec.Result(ctx, &in); err != nil {
		return nil, err
	}
	return &in, nil
}

func (f *fold) done(ctx context.Context, rec *Record) error {
	var res Result
	if err := rec.Result(ctx, &res); err != nil {
		return err
	}
	for _, m := range res.Messages {
		e := Entry{Message: m}
		if len(m.ToolCalls) > 0 {
			e.ProviderIDs = res.ProviderIDs
		}
		f.r.Entries = insert(f.r.Entries, e)
	}
	if len(res.State) > 0 {
		f.r.State = patch(f.r.State, res.State)
	}
	return nil
}

// insert adds a message where clients put it: a tool's behind the message with its call and the
// results already there, any other at the end.
func insert(entries []Entry, e Entry) []Entry {
	if e.Message.Role != agui.RoleTool {
		return append(entries, e)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if !calls(entries[i].Message, e.Message.ToolCallID) {
			continue
		}
		at := i + 1
		for at < len(entries) && entries[at].Message.Role == agui.RoleTool {
			at++
		}
		return slices.Insert(slices.Clip(entries), at, e)
	}
	return append(entries, e)
}

func calls(m agui.Message, toolCallID string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c agui.ToolCall) bool { return c.ID == toolCallID })
}

// patch applies operations as one patch. It is done by what clients do, so that both agree on what
// does not apply and is skipped.
func patch(state json.RawMessage, ops []json.RawMessage) json.RawMessage {
	raw, err := json.Marshal(ops)
	if err != nil {
		return state
	}
	client := agui.NewReducer(nil, state)
	if client.Apply(&agui.StateDelta{Delta: raw}) != nil {
		return state
	}
	return client.State()
}

// reductionCache keeps the newest reduction of the threads used last.
type reductionCache struct {
	newest *lru.Cache[Thread, *Reduction]
}

func newReductionCache(size int) (*reductionCache, error) {
	c, err := lru.New[Thread, *Reduction](size)
	if err != nil {
		return nil, fmt.Errorf("stream: reductions: %w", err)
	}
	return &reductionCache{newest: c}, nil
}

func (c *reductionCache) keep(t Thread, r *Reduction) {
	if old, ok := c.newest.Peek(t); !ok || old.Seq < r.Seq {
		c.newest.Add(t, r)
	}
}

// base returns the newest reduction at hand that is not newer than a record.
func (c *reductionCache) base(ctx context.Context, l *Log, t Thread, seq uint64) *Reduction {
	if r, ok := c.newest.Get(t); ok && r.Seq <= seq {
		return r
	}
	if r := l.loadCheckpoint(ctx, t); r != nil && r.Seq <= seq {
		return r
	}
	return &Reduction{State: emptyState}
}

func (l *Log) checkpointName(t Thread) string { return "checkpoint." + l.threadSubject(t) }

// loadCheckpoint returns nil if there is no checkpoint, or none that can be read (it may be replaced
// at this moment): it only saves reading the log.
func (l *Log) loadCheckpoint(ctx context.Context, t Thread) *Reduction {
	data, err := l.blobs.GetBytes(ctx, l.checkpointName(t))
	if err != nil {
		return nil
	}
	var r Reduction
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	return &r
}

// Checkpoint stores a reduction if enough lies behind the last one, so that opening a thread costs
// what came since, not its whole past. atEnd lowers the bound: a run has ended.
func (l *Log) Checkpoint(ctx context.Context, t Thread, r *Reduction, atEnd bool) error {
	if r.behind < checkpointAtEnd || !atEnd && r.behind < checkpointWithin {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("stream: checkpoint: %w", err)
	}
	if _, err := l.blobs.PutBytes(ctx, l.checkpointName(t), data); err != nil {
		return fmt.Errorf("stream: checkpoint of thread %q: %w", t.ID, err)
	}
	stored := *r
	stored.behind = 0
	l.reductions.newest.Add(t, &stored)
	return nil
}
