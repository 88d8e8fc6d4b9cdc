package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
	// Said is how many messages the client has said behind the first SaidBehind of the thread. More may
	// be kept by now: what came while the run waited.
	Said       int `json:"said,omitempty"`
	SaidBehind int `json:"saidBehind,omitempty"`
	// StateKept tells that the run begins with a state that its client does not know.
	StateKept bool `json:"stateKept,omitempty"`
}

// Reduction is what the log of a thread says so far: its conversation and its state. It is
// immutable. A step counts when its done is read, so a superseded attempt leaves nothing; and since
// done holds finished messages, what models say piece by piece is never looked at. Changes of the
// state, and activities, are: several lanes may make them at once, and their order is the log's.
type Reduction struct {
	// Seq is the last record of the thread that is reduced here.
	Seq uint64 `json:"seq"`
	// Run is the token of the last run that began, RunID its id, Execution the one that began it; Sealed
	// tells that it has ended.
	Run       string `json:"run,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Execution string `json:"execution,omitempty"`
	Sealed    bool   `json:"sealed,omitempty"`
	// Input is the sequence of that run's accepted input, Context tells that it has entries for the model,
	// Tools that it has tools of its client's.
	Input   uint64 `json:"input,omitempty"`
	Context bool   `json:"context,omitempty"`
	Tools   bool   `json:"tools,omitempty"`
	// Waits are the tool calls that the run has ended with and that its client is to answer.
	Waits   []string `json:"waits,omitempty"`
	Entries []Entry  `json:"entries,omitempty"`
	// Moved tells that inputs have changed the order of the conversation, Unmoved how many messages at its
	// beginning never stood anywhere else.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
	// State is what finished steps made of the state.
	State json.RawMessage `json:"state,omitempty"`
	// Journal and Pending hold what attempts changed that are still open: see journal.go.
	Journal journal   `json:"journal,omitzero"`
	Pending []Pending `json:"pending,omitempty"`

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

// liveState is the state as a reader has it that was shown everything up to r.Seq: with what the
// open attempts changed.
func liveState(r *Reduction) json.RawMessage { return r.stateFor(nil) }

// stateFor is the live state without what some writers changed: a reader that comes after their end
// is not shown them, though they are open at r.Seq.
func (r *Reduction) stateFor(unshown map[string]uint64) json.RawMessage {
	if len(r.Journal.Changes) == 0 {
		return r.State
	}
	return applyChanges(r.Journal.Settled, r.Journal.Changes, func(c change) bool {
		_, hidden := unshown[c.Writer]
		return !hidden
	})
}

// liveMessages is the list of messages as such a reader has it: with the activities of the open
// attempts. What they say otherwise, texts and calls, is not in it.
func liveMessages(r *Reduction) []agui.Message { return r.messagesFor(nil) }

// withoutPending leaves out the activities of a lane's open attempt.
func (r *Reduction) withoutPending(lane Lane) *Reduction {
	without := *r
	without.Pending = nil
	for _, p := range r.Pending {
		if p.Lane != lane {
			without.Pending = append(without.Pending, p)
		}
	}
	return &without
}

func (r *Reduction) messagesFor(unshown map[string]uint64) []agui.Message {
	messages := make([]agui.Message, 0, len(r.Entries)+len(r.Pending))
	next := 0
	for _, p := range r.Pending {
		for ; next < p.At; next++ {
			messages = append(messages, r.Entries[next].Message)
		}
		if _, hidden := unshown[p.Writer]; !hidden {
			messages = append(messages, p.Message)
		}
	}
	for _, e := range r.Entries[next:] {
		messages = append(messages, e.Message)
	}
	return messages
}

// KeepsState tells whether a run with this input begins with a state that its client does not know:
// it says that it has none, and the thread has one.
func (r *Reduction) KeepsState(in *Input) bool {
	return in.saysNoState() && !bytes.Equal(r.State, emptyState)
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
	f := newFold(l, base)
	for r, err := range l.records(ctx, l.threadSubject(t)+".>", base.Seq+1, seq) {
		if err != nil {
			return nil, err
		}
		if err := f.add(ctx, r); err != nil {
			return nil, err
		}
	}
	r := f.reduction(seq)
	l.reductions.keep(t, r)
	return r, nil
}

// reduceBefore returns the reduction of a thread as of the record before one of its records.
func (l *Log) reduceBefore(ctx context.Context, t Thread, seq uint64) (*Reduction, error) {
	base := l.reductions.base(ctx, l, t, seq-1)
	f := newFold(l, base)
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
	return f.reduction(seq - 1), nil
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
