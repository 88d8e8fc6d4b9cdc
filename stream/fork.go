package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
)

// A fork is a thread whose conversation and state begin with those of another one, as they were at the end
// of one of its runs. Its first record holds them, so that nothing ties the two together from then on:
// either may be cut, edited or purged. What is copied is the conversation as a checkpoint has it, not the
// log.

// Errors of forking.
var (
	// ErrRunActive: the run has not ended, so there is nothing yet that a thread could begin with.
	ErrRunActive = errors.New("stream: the run has not ended")
	// ErrThreadExists: the log has something of the thread, and that is not the same fork.
	ErrThreadExists = errors.New("stream: the thread exists")
)

// Origin is the run that a fork hangs on.
type Origin struct {
	Thread string `json:"thread"`
	// Run is the run's id as clients know it, Agent its agent.
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// ProtocolVersion is what the run's client said it speaks.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
}

// fork is the note of a KindFork record.
type fork struct {
	Thread  string          `json:"thread"` // the new one's id
	Origin  Origin          `json:"origin"`
	Entries []Entry         `json:"entries,omitempty"`
	State   json.RawMessage `json:"state"`
	// Handed is the reduction's: the agent that had the thread has the fork.
	Handed *Handed `json:"handed,omitempty"`
	// Moved and Unmoved are the reduction's: clients may know the conversation in its old order.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
}

// forkRun stands where a fork's subject has the token of a run: it is no run's.
const forkRun = "~fork"

// Fork begins a thread of the same tenant with what another one was at the end of a run. Questions that the
// run has ended with, decisions about them, and what is remembered of those stay where they are. The same
// again is the same fork; anything else that the thread has is ErrThreadExists. A run that has not ended, in
// its last segment, is ErrRunActive.
func (l *Log) Fork(ctx context.Context, from Run, to Thread) error {
	begun, err := l.Begun(ctx, from)
	if err != nil {
		return err
	}
	end, err := l.last(ctx, l.laneSubject(from, LaneMain))
	switch {
	case err != nil:
		return err
	case begun == nil, end == nil, end.Kind != KindTerminal:
		return ErrRunActive
	}
	base, err := l.ReduceTo(ctx, from.Thread, end.Seq)
	if err != nil {
		return err
	}
	note := fork{
		Thread:  to.ID,
		Origin:  Origin{Thread: from.Thread.ID, Run: from.Shown(), Agent: begun.Agent, ProtocolVersion: begun.ProtocolVersion},
		Entries: base.Entries, State: base.State, Moved: base.Moved, Unmoved: base.Unmoved,
		Handed: base.Handed,
	}
	rec, err := l.writeFork(ctx, to, &note)
	if err != nil {
		return err
	}
	return l.listForked(ctx, to, rec, note.agent())
}

// agent is the one that the fork begins with.
func (n *fork) agent() string {
	if n.Handed != nil {
		return n.Handed.To
	}
	return n.Origin.Agent
}

// writeFork writes a thread's first record: it is refused if the thread has anything.
func (l *Log) writeFork(ctx context.Context, to Thread, note *fork) (*Record, error) {
	body, err := json.Marshal(note)
	if err != nil {
		return nil, fmt.Errorf("stream: encode fork: %w", err)
	}
	all := l.threadSubject(to) + ".>"
	subject := l.threadSubject(to) + "." + forkRun + "." + string(LaneMain)
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return nil, err
	}
	s := stamp{kind: KindFork, writer: newWriter("")}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		first, err := l.first(ctx, all, 1)
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		if first != nil {
			return first, first.forks(ctx, note.Origin)
		}
		publishing, cancel := context.WithTimeout(ctx, publishPatience)
		_, err = l.js.PublishMsg(publishing, message(subject, s, nil, body), jetstream.WithExpectLastSequenceForSubject(0, all), jetstream.WithRetryAttempts(0))
		cancel()
		if err != nil && hopeless(err) {
			return nil, fmt.Errorf("stream: fork: %w", unreached(err))
		}
		if err != nil && !refused(err) {
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
}

// forks checks that a thread's first record is the fork of a run.
func (r *Record) forks(ctx context.Context, of Origin) error {
	if r.Kind != KindFork {
		return ErrThreadExists
	}
	var there fork
	if err := r.Result(ctx, &there); err != nil {
		return err
	}
	if there.Origin != of {
		return ErrThreadExists
	}
	return nil
}

// fork takes in what the thread begins with.
func (f *fold) fork(ctx context.Context, rec *Record) error {
	var note fork
	if err := rec.Result(ctx, &note); err != nil {
		return err
	}
	if f.r.Run != "" || f.r.Origin != nil {
		return nil // it begins nothing
	}
	f.r.Origin, f.r.Active = &note.Origin, rec.Time
	f.r.Entries, f.r.Moved, f.r.Unmoved = slices.Clip(note.Entries), note.Moved, note.Unmoved
	for i := range f.r.Entries {
		f.r.Entries[i].Since = rec.Seq
	}
	f.r.Journal.Settled, f.r.Handed = note.State, note.Handed
	return nil
}

// inherited shows a fork that nothing was said on yet. A stream of events is one of runs, so it is told
// as a run that has ended; what follows in the log is told as ever.
func (t *threadProjection) inherited(ctx context.Context, rec *Record) ([]Frame, error) {
	var note fork
	if err := rec.Result(ctx, &note); err != nil {
		return nil, err
	}
	profile := t.reader.profile
	if profile == "" {
		profile = ProfileOf(note.Origin.ProtocolVersion)
	}
	run := Run{Thread: t.thread}.Identify("fork", "")
	var frames []Frame
	for i, e := range []agui.Event{
		&agui.RunStarted{ThreadID: t.thread.ID, RunID: run, ParentRunID: note.Origin.Run, ProtocolVersion: agui.Version},
		&agui.MessagesSnapshot{Messages: (&Reduction{Entries: note.Entries}).Messages()},
		&agui.StateSnapshot{Snapshot: note.State},
		&agui.RunFinished{ThreadID: t.thread.ID, RunID: run},
	} {
		at := Position{rec.Seq, i}
		if t.reader.from != nil && !t.reader.from.Position.before(at) {
			continue
		}
		raw, err := agui.Encode(e)
		if err != nil {
			return nil, err
		}
		kind, event, err := profile.speak(e.EventType(), raw)
		if err != nil {
			return nil, err
		}
		frames = append(frames, Frame{Type: kind, Event: event, Cursor: Cursor{Position: at, Profile: profile, Epoch: t.log.epoch, Followed: true}})
	}
	return frames, nil
}

// FindRun returns the threads of a tenant that have begun a run with an id. It looks at the names of all
// threads of the tenant, in the log's memory.
func (l *Log) FindRun(ctx context.Context, tenant, run string) ([]Thread, error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return nil, unreached(err)
	}
	filter := l.prefix + "." + Token(tenant) + ".*." + Token(run) + "." + string(LaneMain)
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, unreached(err)
	}
	var threads []Thread
	for subject := range info.State.Subjects {
		opening, err := l.first(ctx, subject, 1)
		if err != nil {
			return nil, err
		}
		if opening == nil { // purged meanwhile
			continue
		}
		id, err := opening.threadID(ctx)
		if err != nil {
			return nil, err
		}
		threads = append(threads, Thread{Tenant: tenant, ID: id})
	}
	return threads, nil
}

// threadID is the id of the thread in which a record opens a run.
func (r *Record) threadID(ctx context.Context) (string, error) {
	events, err := r.Events(ctx)
	if err != nil {
		return "", err
	}
	for _, raw := range events {
		if agui.TypeOf(raw) != agui.EventRunStarted {
			continue
		}
		e, err := agui.Decode(raw)
		if err != nil {
			return "", err
		}
		if started, ok := e.(*agui.RunStarted); ok {
			return started.ThreadID, nil
		}
	}
	return "", fmt.Errorf("stream: record %d does not open a run", r.Seq)
}
