package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Kind is the kind of a record. It is in the header of the message.
type Kind string

const (
	// KindOpen has the lifecycle events of a step. The first attempt writes it; it is never
	// retracted.
	KindOpen Kind = "open"
	// KindAttempt takes a lane over for a new attempt. It supersedes the events of an unfinished
	// attempt. With a result it ends a step that failed for good.
	KindAttempt Kind = "attempt"
	// KindEvents has events. Its result, if any, is the attempt's note (see Attempt.Note).
	KindEvents Kind = "events"
	// KindDone is the last record of an attempt, with the step's result.
	KindDone Kind = "done"
	// KindSupersede takes a lane over without a new attempt. The events of the unfinished attempt
	// are kept if the record has a result, and retracted if it has none.
	KindSupersede Kind = "supersede"
	// KindTerminal ends the run. Later records of the run do not count.
	KindTerminal Kind = "terminal"
	// KindProposal has something from outside. It decides nothing, and no reader sees it.
	KindProposal Kind = "proposal"
	// KindMark precedes a record whose change of the state depends on its value (see
	// Attempt.FinishOn). No reader sees it.
	KindMark Kind = "mark"
	// KindCancel is a request to cancel the run.
	KindCancel Kind = "cancel"
	// KindFork begins a thread as a fork of another one.
	KindFork Kind = "fork"
	// KindAudit has an audit entry of a run's interrupts. No reader sees it.
	KindAudit Kind = "audit"
)

// header is the header of a record: kind, step, writer, frame number and number of events,
// separated by blanks, and the word shared if some of the events change what lanes share. It is one
// header instead of six, because it is parsed for every token.
const header = "Perdure"

const sharedMark = "shared"

// stamp is the content of the header.
type stamp struct {
	kind   Kind
	step   string // the same for every attempt of a step
	writer string // random per attempt
	frame  int    // counts the records of a writer
	shared bool   // has events that change what lanes share (see Lane.Shares)
}

func (s stamp) encode(events int) string {
	value := fmt.Sprintf("%s %s %s %d %d", s.kind, orDash(s.step), orDash(s.writer), s.frame, events)
	if s.shared {
		value += " " + sharedMark
	}
	return value
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func fromDash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// Record is one message of the log. It is immutable and safe for concurrent use.
type Record struct {
	Seq    uint64
	Time   time.Time
	Lane   Lane
	Kind   Kind
	Step   string
	Writer string
	Frame  int

	thread string   // subject up to the thread's token
	run    string   // the run's token
	size   int      // with the blobs of its events
	events int      // how many of lines are events; one more line is the result
	shared bool     // some of them change what lanes share
	lines  [][]byte // as stored: may be references to blobs

	log      *Log
	resolve  sync.Mutex
	resolved [][]byte // lines with their blobs, nil until they are read; guarded by resolve
}

// decodeRecord decodes a message. The record keeps the data.
func decodeRecord(l *Log, subject string, seq uint64, at time.Time, value string, data []byte) (*Record, error) {
	thread, run, lane, ok := splitSubject(subject)
	if !ok {
		return nil, fmt.Errorf("stream: record %d: subject %q is not a lane", seq, subject)
	}
	fields := strings.Fields(value)
	if len(fields) != 5 && (len(fields) != 6 || fields[5] != sharedMark) {
		return nil, fmt.Errorf("stream: record %d: header %q has not the fields of a record", seq, value)
	}
	frame, err := strconv.Atoi(fields[3])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: frame: %w", seq, err)
	}
	events, err := strconv.Atoi(fields[4])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: events: %w", seq, err)
	}
	var lines [][]byte
	if len(data) > 0 {
		lines = bytes.Split(data, []byte{'\n'})
	}
	if events < 0 || len(lines) < events || len(lines) > events+1 {
		return nil, fmt.Errorf("stream: record %d: %d lines for %d events", seq, len(lines), events)
	}
	return &Record{
		Seq: seq, Time: at, Lane: lane, Kind: Kind(fields[0]), Step: fromDash(fields[1]), Writer: fromDash(fields[2]),
		Frame: frame, thread: thread, run: run, size: len(data) + referred(lines[:events]),
		events: events, shared: len(fields) == 6, lines: lines, log: l,
	}, nil
}

// Sequence returns the record's sequence; 0 = r is nil.
func (r *Record) Sequence() uint64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// RunToken returns the token of the record's run (see Token).
func (r *Record) RunToken() string { return r.run }

// OfThread reports whether the record belongs to a thread.
func (r *Record) OfThread(t Thread) bool { return r.thread == r.log.ThreadSubject(t) }

// Shared reports whether the record has events that change what lanes share (see Lane.Shares).
func (r *Record) Shared() bool { return r.shared }

// Size returns how many bytes the events of the record take, with what they refer to.
func (r *Record) Size() int { return r.size }

// Weight returns how many bytes the record takes, with what its events and its result refer to.
func (r *Record) Weight() int { return r.size + referred(r.lines[r.events:]) }

// Is reports whether the record belongs to a run, of any thread.
func (r *Record) Is(run Run) bool { return r.run == Token(run.ID) }

// Events returns the record's AG-UI events as JSON. Large ones are loaded from the object store,
// once for all readers; ctx bounds that.
func (r *Record) Events(ctx context.Context) ([][]byte, error) { return r.load(ctx, 0, r.events) }

// HasResult reports whether the record has a result.
func (r *Record) HasResult() bool { return len(r.lines) > r.events }

// Result decodes the record's result into v.
func (r *Record) Result(ctx context.Context, v any) error {
	if !r.HasResult() {
		return fmt.Errorf("stream: record %d (%s) has no result", r.Seq, r.Kind)
	}
	lines, err := r.load(ctx, r.events, r.events+1)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(lines[0], v); err != nil {
		return fmt.Errorf("stream: result of record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return nil
}

// load returns the lines from one to another, with blobs in the place of references. It does not
// load other lines: a reader of events does not need a result, which may be large. A failure is not
// kept for other readers: it may be the deadline of this one.
func (r *Record) load(ctx context.Context, from, to int) ([][]byte, error) {
	if !hasReference(r.lines[from:to]) {
		return r.lines[from:to], nil
	}
	r.resolve.Lock()
	defer r.resolve.Unlock()
	if r.resolved == nil {
		r.resolved = make([][]byte, len(r.lines))
	}
	for i := from; i < to; i++ {
		if r.resolved[i] != nil {
			continue
		}
		loaded, err := r.log.loadBlobs(ctx, r.lines[i:i+1])
		if err != nil {
			return nil, err
		}
		r.resolved[i] = loaded[0]
	}
	return r.resolved[from:to], nil
}

// message makes the message of a record. Lines are compact JSON, which has no newline.
func message(subject string, s stamp, events [][]byte, result []byte) *nats.Msg {
	size := len(result) + 1
	for _, e := range events {
		size += len(e) + 1
	}
	data := make([]byte, 0, size)
	for i, e := range events {
		if i > 0 {
			data = append(data, '\n')
		}
		data = append(data, e...)
	}
	if result != nil {
		if len(events) > 0 {
			data = append(data, '\n')
		}
		data = append(data, result...)
	}
	return &nats.Msg{Subject: subject, Header: nats.Header{header: []string{s.encode(len(events))}}, Data: data}
}
