package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
)

// A fork is a thread that begins with the conversation and the state that another thread had at the
// end of one of its runs. Its first record has them, so the threads are independent from then on:
// each may be edited or purged.

// Errors of forking.
var (
	// ErrRunActive tells that the run has not ended.
	ErrRunActive = errors.New("stream: the run has not ended")
	// ErrThreadExists tells that the log has records of the thread, and that they are not of the
	// same fork.
	ErrThreadExists = errors.New("stream: the thread exists")
)

// Origin is the run whose end a fork begins with.
type Origin struct {
	Thread string `json:"thread"`
	// Run is the run's ID as clients know it, Agent its agent.
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// ProtocolVersion is that of the run's input; readers of the fork get it until its first run.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
}

// forkRun takes the place of a run's token in the subject of a fork's first record. No run has this
// token.
const forkRun = "~fork"

// Fork is the part of a fork's first record that names its origin. The record also has the
// conversation and the state that the thread begins with (snapshot.Content).
type Fork struct {
	Thread string `json:"thread"` // ID of the new thread
	Origin Origin `json:"origin"`
	// Handed is the origin's handoff: the agent that had the thread also has the fork.
	Handed *HandoffTrail `json:"handed,omitempty"`
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
	rec, err := l.writeFork(ctx, to, fork.Origin, note)
	if err != nil {
		return err
	}
	return l.indexFork(ctx, to, rec, fork.Agent())
}

// writeFork returns the first record of the fork; it writes the record unless it exists. The fence
// is the last sequence of all subjects of the thread, not only of one lane: the fork is refused if
// the thread has any record, for instance a proposed input.
func (l *Log) writeFork(ctx context.Context, to Thread, origin Origin, note any) (*Record, error) {
	body, err := json.Marshal(note)
	if err != nil {
		return nil, fmt.Errorf("stream: encode fork: %w", err)
	}
	all := l.ThreadSubject(to) + ".>"
	subject := l.ThreadSubject(to) + "." + forkRun + "." + string(LaneMain)
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return nil, err
	}
	s := stamp{kind: KindFork, writer: newWriter("")}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		first, err := l.First(ctx, all, 1)
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		if first != nil {
			return first, first.checkForkOf(ctx, origin)
		}
		publishCtx, cancel := context.WithTimeout(ctx, publishTimeout)
		_, err = l.js.PublishMsg(publishCtx, message(subject, s, nil, body), jetstream.WithExpectLastSequenceForSubject(0, all), jetstream.WithRetryAttempts(0))
		cancel()
		if err != nil && isPermanent(err) {
			return nil, fmt.Errorf("stream: fork: %w", asUnavailable(err))
		}
		if err != nil && !isWrongLastSequence(err) {
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
}

// checkForkOf checks that a thread's first record is a fork of this origin; else the error is
// ErrThreadExists.
func (r *Record) checkForkOf(ctx context.Context, origin Origin) error {
	if r.Kind != KindFork {
		return ErrThreadExists
	}
	var existing Fork
	if err := r.Result(ctx, &existing); err != nil {
		return err
	}
	if existing.Origin != origin {
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
