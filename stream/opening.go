package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
)

// Opening is the result of a run's first record: the identity of the run, its agent, and its
// conversation.
type Opening struct {
	RunID string `json:"run"`
	// Execution is the Temporal run ID of the execution that opened the run.
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// Input is the sequence of the accepted proposal, Digest that of its decoded content. A run
	// without an input (0) continues the run with the ID Continues.
	Input     uint64 `json:"input"`
	Digest    string `json:"digest"`
	Continues string `json:"continues,omitempty"`
	// Event is that of the input.
	Event *TriggerEvent `json:"event,omitempty"`
	// ProtocolVersion is the input's. Readers without a cursor get the generation of this version.
	ProtocolVersion string     `json:"protocolVersion,omitempty"`
	Accepted        Acceptance `json:"accepted"` // as Renew has judged it; its messages are in the proposal only
	// Edits tells that approvers have edited arguments of the run's tool calls, which readers may
	// have seen before.
	Edits bool `json:"edits,omitempty"`
	// Keeps is a member of the state that stays as the thread has it, whatever the input says; "" =
	// none.
	Keeps string `json:"keeps,omitempty"`
	// StateKept tells that the run begins with a state that its client does not know; readers get a
	// STATE_SNAPSHOT.
	StateKept bool `json:"stateKept,omitempty"`
}

// OpenRun writes the first record of a run and lists the run in the index of threads, with what its
// input says of the thread. The result is Place.After for the first attempt (see OpenStep). A later
// attempt calls it again, in case the first one died between the two writes.
func (l *Log) OpenRun(ctx context.Context, p Place, o Opening, description Description, events []agui.Event) (uint64, error) {
	seq, err := l.OpenStep(ctx, p, o, events...)
	if err != nil {
		return 0, err
	}
	return seq, l.indexOpening(ctx, p.Run, o.Agent, seq, description)
}

// BeginRun is OpenRun and then Begin for the same attempt (see BeginStep). The attempt lists the run
// while it works: it ends if it cannot, and finishes only after it has.
func (l *Log) BeginRun(ctx context.Context, p Place, o Opening, description Description, events []agui.Event) (*Attempt, *Record, error) {
	a, seq, done, err := l.BeginStep(ctx, p, o, events...)
	if err != nil {
		return nil, nil, err
	}
	if a == nil {
		return nil, done, l.indexOpening(ctx, p.Run, o.Agent, seq, description)
	}
	a.wait.Go(func() {
		// An attempt that fails at once must list the run too, but Close must not wait for an outage.
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(a.ctx, func() { time.AfterFunc(publishTimeout, cancel) })()
		defer cancel()
		if err := l.indexOpening(ctx, p.Run, o.Agent, seq, description); err != nil {
			a.cancel(err)
		}
	})
	return a, nil, nil
}

// Metadata returns the metadata of RUN_STARTED: the revision of the agent, under the key that
// capabilities use, and the event that started the run; nil = the opening has neither.
func (o Opening) Metadata() (agui.Metadata, error) {
	var metadata agui.Metadata
	add := func(key string, value any) error {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("stream: encode %s: %w", key, err)
		}
		if metadata == nil {
			metadata = agui.Metadata{}
		}
		metadata[key] = encoded
		return nil
	}
	if o.Revision != "" {
		if err := add("perdure.revision", o.Revision); err != nil {
			return nil, err
		}
	}
	if o.Event != nil {
		if err := add("perdure.event", o.Event); err != nil {
			return nil, err
		}
	}
	return metadata, nil
}

// OpeningOf returns the opening of a run; nil = the log does not have the run.
func (l *Log) OpeningOf(ctx context.Context, run Run) (*Opening, error) {
	rec, err := l.First(ctx, l.LaneSubject(run, LaneMain), 1)
	if err != nil || rec == nil {
		return nil, err
	}
	if !rec.OpensRun() {
		return nil, errors.New("stream: the run's first record is not its opening")
	}
	var o Opening
	if err := rec.Result(ctx, &o); err != nil {
		return nil, err
	}
	return &o, nil
}

// HasRun reports whether the log has any record of a run, for instance its proposed input.
func (l *Log) HasRun(ctx context.Context, run Run) (bool, error) {
	rec, err := l.Last(ctx, l.RunSubject(run)+".>")
	return rec != nil, err
}

// LastOf returns the sequence of a thread's last record; 0 = the log has none.
func (l *Log) LastOf(ctx context.Context, t Thread) (uint64, error) {
	rec, err := l.Last(ctx, l.ThreadSubject(t)+".>")
	return rec.Sequence(), err
}

// HasThread reports whether the log has any record of a thread, including proposals. A purged
// thread has none.
func (l *Log) HasThread(ctx context.Context, t Thread) (bool, error) {
	last, err := l.LastOf(ctx, t)
	return last > 0, err
}
