package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/agui"
)

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
	// Opened is the sequence of that run's first record.
	Opened uint64 `json:"opened,omitempty"`
	// Input is the sequence of that run's accepted input, Context tells that it has entries for the model,
	// Tools that it has tools of its client's.
	Input   uint64 `json:"input,omitempty"`
	Context bool   `json:"context,omitempty"`
	Tools   bool   `json:"tools,omitempty"`
	// Waits are the tool calls that the run has ended with, or is held for, and that its client is to answer,
	// Interrupts the questions. Answered are the last ones that were answered, by whomever.
	Waits      []string         `json:"waits,omitempty"`
	Interrupts []agui.Interrupt `json:"interrupts,omitempty"`
	Answered   []agui.Interrupt `json:"answered,omitempty"`
	// Decided are the decisions about these that were carried out.
	Decided []Decided `json:"decided,omitempty"`
	// Remembered are the tools whose calls people need not be asked for any more, the newest last.
	Remembered []Remembered `json:"remembered,omitempty"`
	// Handed tells that the thread was handed over to the agent that has it.
	Handed *Handed `json:"handed,omitempty"`
	// Summaries stand for messages of the conversation, the newest last.
	Summaries []Summary `json:"summaries,omitempty"`
	Entries   []Entry   `json:"entries,omitempty"`
	// Runs are all that began, in their order, Usage what they say that they have used, each model once.
	Runs  []RunNote         `json:"runs,omitempty"`
	Usage []agui.TokenUsage `json:"usage,omitempty"`
	// Estimated is the part of Usage that is estimated; nil = no call was cut.
	Estimated *EstimatedUsage `json:"estimated,omitempty"`
	// Active is when something was last done on the thread.
	Active time.Time `json:"active,omitzero"`
	// Origin is what the thread is a fork of; nil = it began with nothing.
	Origin *Origin `json:"origin,omitempty"`
	// Moved tells that the order of the conversation has changed, by an input or by the result of work that
	// was handed to a subagent, Unmoved how many messages at its
	// beginning never stood anywhere else.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
	// Cut is what the last run's input cut from the conversation and clients keep unless they are told.
	Cut []CutMessage `json:"cut,omitempty"`
	// Mark is the last mark of the run (see Attempt.FinishOn); 0 = none.
	Mark uint64 `json:"mark,omitempty"`
	// State is what finished steps made of the state.
	State json.RawMessage `json:"state,omitempty"`
	// Journal and Pending hold what attempts changed that are still open: see journal.go.
	Journal journal   `json:"journal,omitzero"`
	Pending []Pending `json:"pending,omitempty"`

	behind int // bytes of records since the last checkpoint
}

// CutMessage is a message that was cut, without its content.
type CutMessage struct {
	ID           string    `json:"id"`
	Role         agui.Role `json:"role"`
	ActivityType string    `json:"activityType,omitempty"`
}

// Messages returns the conversation as clients see it.
func (r *Reduction) Messages() []agui.Message { return appendShown(nil, r.Entries) }

// appendShown appends the messages of entries that clients see.
func appendShown(messages []agui.Message, entries []Entry) []agui.Message {
	messages = slices.Grow(messages, len(entries))
	for _, e := range entries {
		if !e.Hidden() {
			messages = append(messages, e.Message)
		}
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

// withoutSpoken leaves out the activities of open attempts on lanes that agents speak on.
func (r *Reduction) withoutSpoken() *Reduction {
	without := *r
	without.Pending = nil
	for _, p := range r.Pending {
		if !p.Lane.speaks() {
			without.Pending = append(without.Pending, p)
		}
	}
	return &without
}

func (r *Reduction) messagesFor(unshown map[string]uint64) []agui.Message {
	messages := make([]agui.Message, 0, len(r.Entries)+len(r.Pending))
	next := 0
	for _, p := range r.Pending {
		if next < p.At {
			messages = appendShown(messages, r.Entries[next:p.At])
			next = p.At
		}
		if _, hidden := unshown[p.Writer]; !hidden && !isPlace(p.Message) {
			messages = append(messages, p.Message)
		}
	}
	return appendShown(messages, r.Entries[next:])
}

// KeepsState tells whether a run with this input begins with a state that its client does not know: it says that it
// has none, and the thread has one, or it has another idea of the member that the run keeps.
func (r *Reduction) KeepsState(in *Input, keeps string) bool {
	if in.saysNoState() {
		return !bytes.Equal(r.State, emptyState)
	}
	return !bytes.Equal(in.stateOn(r.State, keeps), in.Input.State)
}

// StateWith is the state that a run with this input begins with.
func (r *Reduction) StateWith(in *Input) json.RawMessage { return in.stateOn(r.State, "") }

// emptyState is the state of a thread that nobody wrote to.
var emptyState = json.RawMessage("{}")

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

// ReduceTo returns the reduction of a thread as of one of its records. Whoever asks for the same at the
// same time shares the work. It costs what lies between the record and the last checkpoint before it:
// little as long as the record is of the latest run or newer.
func (l *Log) ReduceTo(ctx context.Context, t Thread, seq uint64) (*Reduction, error) {
	return l.reductions.share(ctx, place{t, seq}, func() (*Reduction, error) { return l.reduce(ctx, t, seq) })
}

func (l *Log) reduce(ctx context.Context, t Thread, seq uint64) (*Reduction, error) {
	r, err := l.reduceFrom(ctx, t, l.base(ctx, t, seq), seq)
	if errors.Is(err, errVoid) {
		l.reductions.forget(t)
		return l.reduceFrom(ctx, t, &Reduction{State: emptyState}, seq)
	}
	return r, err
}

// errVoid: the thread has been purged since the base was made, and has begun anew.
var errVoid = errors.New("stream: the reduction is of a thread that was purged")

// reduceFrom goes on from a base. Its last record is read again: a purge leaves none, so a base whose
// record is not there any more is of another conversation.
func (l *Log) reduceFrom(ctx context.Context, t Thread, base *Reduction, seq uint64) (*Reduction, error) {
	f, met := newFold(l, base), base.Seq == 0
	for r, err := range l.records(ctx, l.threadSubject(t)+".>", max(base.Seq, 1), seq) {
		switch {
		case err != nil:
			return nil, err
		case !met && r.Seq != base.Seq:
			return nil, errVoid
		case !met:
			met = true
			continue
		}
		if err := f.add(ctx, r); err != nil {
			return nil, err
		}
	}
	return f.reduction(seq), nil
}

// base returns the newest reduction at hand that is not newer than a record.
func (l *Log) base(ctx context.Context, t Thread, seq uint64) *Reduction {
	if r := l.reductions.upTo(t, seq); r != nil {
		return r
	}
	if r := l.loadCheckpoint(ctx, t, seq); r != nil {
		return r
	}
	return &Reduction{State: emptyState}
}
