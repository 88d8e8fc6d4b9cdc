package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
)

// A fork is a thread that begins with the conversation and the state that another thread had at the
// end of one of its runs, or after a step of it. Its first record has them, so the threads are
// independent from then on: each may be edited or purged.

// Errors of forking.
var (
	// ErrRunActive tells that the run has not ended.
	ErrRunActive = errors.New("stream: the run has not ended")
	// ErrThreadExists tells that the log has records of the thread, and that they are not of the
	// same fork.
	ErrThreadExists = errors.New("stream: the thread exists")
)

// Origin is the run with whose end, or a step of it, a fork begins.
type Origin struct {
	Thread string `json:"thread"`
	// Run is the run's ID as clients know it, Agent its agent.
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// ProtocolVersion is that of the run's input; readers of the fork get it until its first run.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	// At is the cursor of the step of the run after which the fork begins; "" = the run's end. After
	// is the path of that step if it is one of a pipeline.
	At    string `json:"at,omitempty"`
	After string `json:"after,omitempty"`
}

// forkRun takes the place of a run's token in the subject of a fork's first record. No run has this
// token.
const forkRun = "~fork"

// Fork is the part of a fork's first record that names its origin. The record also has the
// conversation and the state that the thread begins with (snapshot.Content).
type Fork struct {
	Thread string `json:"thread"` // ID of the new thread
	Origin Origin `json:"origin"`
	// Requester is who forked, and the owner of the new thread; nil = an anonymous caller.
	Requester *auth.Principal `json:"requester,omitempty"`
	// Title is the title of the new thread, from its first messages; "" = none.
	Title string `json:"title,omitempty"`
	// Handed is the origin's handoff: the agent that had the thread also has the fork.
	Handed *HandoffTrail `json:"handed,omitempty"`
}

// owner returns the subject of the fork's owner; "" = an anonymous caller.
func (f *Fork) owner() string {
	if f.Requester == nil {
		return ""
	}
	return f.Requester.Subject
}

// Agent returns the agent that has the fork when it begins.
func (f *Fork) Agent() string {
	if f.Handed != nil {
		return f.Handed.To
	}
	return f.Origin.Agent
}

// WriteFork writes the first record of a thread, and lists the thread in the index. note is the
// record's result: it has the members of fork and the content. The record is written only if the
// thread has no record at all. The error is ErrThreadExists if it has records that are not of the
// same fork.
func (l *Log) WriteFork(ctx context.Context, to Thread, fork *Fork, note any) error {
	body, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("stream: encode fork: %w", err)
	}
	if err := l.beginKey(ctx, to); err != nil {
		return err
	}
	subject := l.ThreadSubject(to) + "." + forkRun + "." + string(LaneMain)
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return err
	}
	msg, err := l.message(ctx, subject, stamp{kind: KindFork, writer: newWriter("")}, nil, body)
	if err != nil {
		return err
	}
	seq, first, err := l.beginThread(ctx, to, msg)
	if err != nil {
		return err
	}
	now := time.Now()
	if first != nil {
		if err := first.checkForkOf(ctx, fork); err != nil {
			return err
		}
		now = first.Time
	}
	return l.indexFork(ctx, to, now, seq, fork.Agent())
}

// checkForkOf checks that a thread's first record is this fork: of the same origin, by the same
// subject. Otherwise the error is ErrThreadExists.
func (r *Record) checkForkOf(ctx context.Context, fork *Fork) error {
	if r.Kind != KindFork {
		return ErrThreadExists
	}
	var existing Fork
	if err := r.Result(ctx, &existing); err != nil {
		return err
	}
	if existing.Origin != fork.Origin || existing.owner() != fork.owner() {
		return ErrThreadExists
	}
	return nil
}

// FindRun returns the threads of a tenant that have a run with an ID. The server searches the
// subjects of all threads of the tenant, in memory; each match costs one more read.
func (l *Log) FindRun(ctx context.Context, tenant, run string) ([]Thread, error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return nil, asUnavailable(err)
	}
	filter := l.prefix + "." + Token(tenant) + ".*." + Token(run) + "." + string(LaneMain)
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, asUnavailable(err)
	}
	var threads []Thread
	for subject := range info.State.Subjects {
		opening, err := l.First(ctx, subject, 1)
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

// threadID returns the ID of the thread in which the record opens a run: subjects have its token
// only.
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
