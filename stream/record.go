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

// Kind says what a record is; it stands in the header, since it is not protocol.
type Kind string

const (
	// KindOpen holds the lifecycle events of a step. It is written once, by whichever attempt comes
	// first, and is never withdrawn.
	KindOpen Kind = "open"
	// KindAttempt takes a lane over for a new attempt; whatever an older attempt of that step wrote
	// there without finishing is void from here on. One with a result ends a step that failed for good.
	KindAttempt Kind = "attempt"
	// KindEvents is a frame of events. Its result, if there is one, is the attempt's note (see Attempt.Note).
	KindEvents Kind = "events"
	// KindDone is the last frame of an attempt and holds the step's result.
	KindDone Kind = "done"
	// KindSupersede takes a lane over without a new attempt: what it holds is closed and kept if the
	// record has a result, withdrawn if it has none.
	KindSupersede Kind = "supersede"
	// KindTerminal ends the run. Records of the run behind it do not count, for any reader.
	KindTerminal Kind = "terminal"
	// KindProposal holds what came from outside; it decides nothing and no reader shows it.
	KindProposal Kind = "proposal"
	// KindMark tells that the record behind it has changed the state by what it was. No reader shows it.
	KindMark Kind = "mark"
	// KindCancel is a request to cancel the run.
	KindCancel Kind = "cancel"
	// KindFork begins a thread with what another one was at the end of a run.
	KindFork Kind = "fork"
	// KindAudit tells what became of a run's questions; no reader shows it.
	KindAudit Kind = "audit"
)

// header is the one header of a record: kind, step, writer, frame number and count of event lines,
// separated by blanks, and the word shared if it holds events that reduction must look at. One header
// instead of six: reading it is on the path of every token.
const header = "Perdure"

const sharedMark = "shared"

// stamp is who wrote a record and as what.
type stamp struct {
	kind   Kind
	step   string // the same for every attempt of a step
	writer string // random per attempt
	frame  int    // counts the records of a writer
	shared bool   // has events that change what lanes share; set by write
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

// Record is one message of the log. It is immutable and may be shared by any number of readers.
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
	size   int      // with what its events refer to, which it holds once somebody has looked
	events int      // how many of lines are events; one more line is the result
	shared bool     // some of them change what lanes share
	lines  [][]byte // as stored: may be references to blobs

	log      *Log
	resolve  sync.Mutex
	resolved [][]byte // lines in whose place is what they refer to, nil until they are read; guarded by resolve
}

// decodeRecord reads a record from a message. The data is kept, not copied.
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

// Sequence is the record's sequence; 0 = r is nil.
func (r *Record) Sequence() uint64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// RunToken is the token of the record's run (see Token).
func (r *Record) RunToken() string { return r.run }

// OfThread reports whether the record belongs to a thread.
func (r *Record) OfThread(t Thread) bool { return r.thread == r.log.ThreadSubject(t) }

// Shared reports whether the record has events that change what lanes share (see Lane.Shares).
func (r *Record) Shared() bool { return r.shared }

// Size is how many bytes the events of the record take, with what they refer to.
func (r *Record) Size() int { return r.size }

// Weight is how many bytes the record takes, with what its events and its result refer to.
func (r *Record) Weight() int { return r.size + referred(r.lines[r.events:]) }

// Is tells whether the record belongs to a run.
func (r *Record) Is(run Run) bool { return r.run == Token(run.ID) }

// Events are the record's AG-UI events, each exact JSON. What was too large for a frame is loaded
// from the blob store, once for all readers; ctx bounds that.
func (r *Record) Events(ctx context.Context) ([][]byte, error) { return r.load(ctx, 0, r.events) }

// HasResult tells whether the record carries a result.
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

// load returns some of the lines, with references replaced by what they refer to. Others are not read: a reader of the events
// has no use for a result, which may be large. A failure, which may be only the impatience of one reader, is not kept for the
// others.
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

// message builds the message of a record. Lines hold no newline: compact JSON has none.
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
