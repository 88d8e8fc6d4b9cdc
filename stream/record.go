package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// This file has the format of a record: one JetStream message on a lane. The header has the kind
// and the writer (see header). The payload has lines of compact JSON, one for each AG-UI event, and
// after them at most one line with the record's result. A line beyond MaxLine is a reference to a
// blob.

// Kind is the kind of a record. It is in the header of the message. docs/internals/architecture.md
// has a table.
type Kind string

const (
	// KindOpen has the lifecycle events of a step. The first attempt writes it, and it is never
	// retracted. Its result is an Opening, a Steering, or missing (see OpensRun and Steers).
	KindOpen Kind = "open"
	// KindBegin is an open record that is also the attempt record of the step's first attempt, of its
	// writer. Its events and its result are those of an open record, and never retracted.
	KindBegin Kind = "begin"
	// KindAttempt takes a lane over for a new attempt, and supersedes the events of an unfinished
	// attempt before it. With a result it ends a step that has failed for good (see Attempt.Fail).
	KindAttempt Kind = "attempt"
	// KindEvents has events. Its result, if any, is the attempt's note (see Attempt.Note).
	KindEvents Kind = "events"
	// KindDone is the last record of an attempt. Its result is the step's Result.
	KindDone Kind = "done"
	// KindSupersede takes a lane over without a new attempt. The events of the unfinished attempt
	// are kept if the record has a result, and retracted if it has none.
	KindSupersede Kind = "supersede"
	// KindTerminal has RUN_FINISHED or RUN_ERROR and seals the run: later records of the run do not
	// count.
	KindTerminal Kind = "terminal"
	// KindProposal has an input, a steering message, a decision or the result of a client tool
	// call, as its result. It changes nothing until a workflow accepts it, and no reader is shown
	// it.
	KindProposal Kind = "proposal"
	// KindMark precedes a record whose change of the state depends on the state's value (mark.go).
	// It is empty, and no reader is shown it.
	KindMark Kind = "mark"
	// KindCancel is a request to cancel the run. Its result is a Cancel.
	KindCancel Kind = "cancel"
	// KindFork is the first record of a thread that begins as a fork of another one. Its result
	// begins with the members of Fork.
	KindFork Kind = "fork"
	// KindAudit has an audit entry of a run's interrupts, as its result. No reader is shown it.
	KindAudit Kind = "audit"
)

// header is the name of a record's only header of its own: kind, step, writer, frame number and
// number of events, separated by blanks. The word "shared" follows if some of the events change what
// lanes share. The word "encrypted" and two numbers follow if the payload is encrypted (see
// encryptedSizes). So no step ID and no writer's name has a blank. It is one header instead of
// several, because readers parse it for every token.
const header = "Perdure"

// Words of the header that follow the number of events.
const (
	sharedWord    = "shared"
	encryptedWord = "encrypted"
)

// encryptedSizes is what the header of an encrypted record tells about the lines, which readers need
// before they decrypt: the bytes of the blobs of the events, and those of the blob of the result. The
// latter is 0 if the result has no blob, and -1 if there is no result.
type encryptedSizes struct{ events, result int }

// stamp is the decoded content of the header, without the number of events.
type stamp struct {
	kind   Kind
	step   string // ID, the same for every attempt of a step; "" = none
	writer string // random for each attempt; tells an attempt its own records
	frame  int    // number of the record among those of its writer, from 0
	shared bool   // has events that change what lanes share (see Lane.Shares)
}

// encode returns the header's value for a record with a number of events.
func (s stamp) encode(events int) string {
	value := fmt.Sprintf("%s %s %s %d %d", s.kind, orDash(s.step), orDash(s.writer), s.frame, events)
	if s.shared {
		value += " " + sharedWord
	}
	return value
}

// orDash returns a field of the header: an empty one is "-", because fields are separated by
// blanks.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// fromDash is the inverse of orDash.
func fromDash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// Record is one message of the log. It is immutable, shared by all readers of a process, and safe
// for concurrent use. Seq is the stream's sequence, Time the server's time of the write. Step,
// Writer and Frame are those of the stamp.
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
	size   int      // bytes of the payload and of the blobs of its events; see Size
	events int      // how many of the lines are events; one more line is the result
	shared bool     // some of the events change what lanes share
	lines  [][]byte // as stored: may be references to blobs; nil if the payload is encrypted
	// encrypted is set if the payload is encrypted.
	encrypted *encryptedPayload

	log    *Log
	loadMu sync.Mutex // also keeps concurrent readers from loading the same blob twice
	loaded [][]byte   // lines with their blobs, nil until they are read; guarded by loadMu
}

// encryptedPayload is the payload of a record that is decrypted by its first reader.
type encryptedPayload struct {
	data  []byte
	value string // of the header
	sizes encryptedSizes
	lines [][]byte // nil until they are decrypted; guarded by Record.loadMu
}

// decodeRecord decodes a message. The record keeps data without a copy, so the caller must not
// change it. An error means that the message is not one of Perdure's: value is the content of its
// header.
func decodeRecord(l *Log, subject string, seq uint64, now time.Time, value string, data []byte) (*Record, error) {
	thread, run, lane, ok := splitSubject(subject)
	if !ok {
		return nil, fmt.Errorf("stream: record %d: subject %q is not a lane", seq, subject)
	}
	fields := strings.Fields(value)
	if len(fields) < 5 {
		return nil, fmt.Errorf("stream: record %d: header %q lacks fields of a record", seq, value)
	}
	shared, sizes, err := decodeWords(fields[5:])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: header %q: %w", seq, value, err)
	}
	frame, err := strconv.Atoi(fields[3])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: frame: %w", seq, err)
	}
	events, err := strconv.Atoi(fields[4])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: events: %w", seq, err)
	}
	r := &Record{
		Seq: seq, Time: now, Lane: lane, Kind: Kind(fields[0]), Step: fromDash(fields[1]), Writer: fromDash(fields[2]),
		Frame: frame, thread: thread, run: run, events: events, shared: shared, log: l,
	}
	if sizes != nil {
		r.encrypted = &encryptedPayload{data: data, value: value, sizes: *sizes}
		r.size = len(data) + sizes.events
		return r, nil
	}
	if r.lines, err = splitLines(data, events); err != nil {
		return nil, fmt.Errorf("stream: record %d: %w", seq, err)
	}
	r.size = len(data) + referredSize(r.lines[:events])
	return r, nil
}

// decodeWords decodes the words of the header that follow the number of events; sizes nil = the
// record is not encrypted.
func decodeWords(words []string) (shared bool, sizes *encryptedSizes, err error) {
	if len(words) > 0 && words[0] == sharedWord {
		shared, words = true, words[1:]
	}
	if len(words) == 0 {
		return shared, nil, nil
	}
	if len(words) != 3 || words[0] != encryptedWord {
		return false, nil, errors.New("unknown words")
	}
	sizes = new(encryptedSizes)
	if sizes.events, err = strconv.Atoi(words[1]); err == nil {
		sizes.result, err = strconv.Atoi(words[2])
	}
	if err == nil && (sizes.events < 0 || sizes.result < -1) {
		err = errors.New("negative size")
	}
	return shared, sizes, err
}

// splitLines splits a payload into the lines of its events, and of its result if it has one.
func splitLines(data []byte, events int) ([][]byte, error) {
	var lines [][]byte
	if len(data) > 0 {
		lines = bytes.Split(data, []byte{'\n'})
	}
	if events < 0 || len(lines) < events || len(lines) > events+1 {
		return nil, fmt.Errorf("%d lines for %d events", len(lines), events)
	}
	return lines, nil
}

// Sequence returns the record's sequence; 0 = r is nil, which is how reads report that there is no
// record.
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

// OfTenant reports whether the record belongs to a thread of a tenant.
func (r *Record) OfTenant(tenant string) bool {
	return strings.HasPrefix(r.thread, r.log.prefix+"."+Token(tenant)+".")
}

// Shared reports whether the record has events that change what lanes share (see Lane.Shares). The
// header has this flag, so snapshots need not read the lines of other records.
func (r *Record) Shared() bool { return r.shared }

// Size returns how many bytes the record takes: the payload as it is stored, and the blobs of its
// events. It does not count the blob of its result, which readers of events do not load.
func (r *Record) Size() int { return r.size }

// SizeWithResult returns how many bytes the record takes with the blobs of its events and its
// result.
func (r *Record) SizeWithResult() int {
	if r.encrypted != nil {
		return r.size + max(0, r.encrypted.sizes.result)
	}
	return r.size + referredSize(r.lines[r.events:])
}

// HasRunID reports whether the record belongs to a run with this ID, in whatever thread.
func (r *Record) HasRunID(run Run) bool { return r.run == Token(run.ID) }

// Events returns the record's AG-UI events as JSON, in their order. The caller must not change
// them. They are decrypted, and large ones are loaded from the object store, once for all readers of
// the record; ctx bounds that. The error is ErrLogLost if a blob is missing, and ErrGone if the key
// of the thread was destroyed.
func (r *Record) Events(ctx context.Context) ([][]byte, error) { return r.load(ctx, 0, r.events) }

// HasResult reports whether the record has a result. The type of the result depends on the kind.
func (r *Record) HasResult() bool {
	if r.encrypted != nil {
		return r.encrypted.sizes.result >= 0
	}
	return len(r.lines) > r.events
}

// Result decodes the record's result into v. It fails if the record has none. A result beyond
// MaxLine is loaded from the object store, and ctx bounds that.
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

// load returns the lines with from ≤ index < to, and loads the blobs that they refer to. It loads
// no other blob: a reader of events does not need the result, which may be large. A failure is not
// kept for other readers, because its cause may be the deadline of this one.
func (r *Record) load(ctx context.Context, from, to int) ([][]byte, error) {
	lines, err := r.storedLines(ctx)
	if err != nil {
		return nil, err
	}
	if !hasReference(lines[from:to]) {
		return lines[from:to], nil
	}
	r.loadMu.Lock()
	defer r.loadMu.Unlock()
	if r.loaded == nil {
		r.loaded = make([][]byte, len(lines))
	}
	for i := from; i < to; i++ {
		if r.loaded[i] != nil {
			continue
		}
		loaded, err := r.log.loadBlobs(ctx, r.thread, lines[i:i+1])
		if err != nil {
			return nil, err
		}
		r.loaded[i] = loaded[0]
	}
	return r.loaded[from:to], nil
}

// storedLines returns the lines of the payload, which may be references to blobs. It decrypts an
// encrypted payload once.
func (r *Record) storedLines(ctx context.Context) ([][]byte, error) {
	p := r.encrypted
	if p == nil {
		return r.lines, nil
	}
	r.loadMu.Lock()
	defer r.loadMu.Unlock()
	if p.data == nil {
		return p.lines, nil
	}
	subject := r.thread + "." + r.run + "." + string(r.Lane)
	data, err := r.log.decrypt(ctx, r.log.keyName(r.thread), p.data, recordPlace(subject, p.value))
	if err == nil {
		p.lines, err = splitLines(data, r.events)
	}
	if err == nil && (len(p.lines) > r.events) != (p.sizes.result >= 0) {
		err = errors.New("the header is of another record")
	}
	if err != nil {
		return nil, fmt.Errorf("stream: decrypt record %d: %w", r.Seq, err)
	}
	p.data = nil
	return p.lines, nil
}

// recordPlace returns the place that a record's ciphertext is bound to: its subject, and the value
// of its header.
func recordPlace(subject, value string) string { return subject + "\x00" + value }

// message makes the message of a record; result nil = none. Lines are compact JSON, so none has a
// line feed. It encrypts the payload, unless the log has no Cipher, or the record is empty. Errors
// are those of Log.encrypt.
func (l *Log) message(ctx context.Context, subject string, s stamp, events [][]byte, result []byte) (*nats.Msg, error) {
	msg := plainMessage(subject, s, events, result)
	if l.cipher == nil || len(msg.Data) == 0 {
		return msg, nil
	}
	thread, _, _, ok := splitSubject(subject)
	if !ok {
		return nil, fmt.Errorf("stream: %q is not a lane", subject)
	}
	sizes := encryptedSizes{events: referredSize(events), result: -1}
	if result != nil {
		sizes.result = referredSize([][]byte{result})
	}
	value := fmt.Sprintf("%s %s %d %d", msg.Header.Get(header), encryptedWord, sizes.events, sizes.result)
	var err error
	if msg.Data, err = l.encrypt(ctx, thread, msg.Data, recordPlace(subject, value)); err != nil {
		return nil, err
	}
	msg.Header = nats.Header{header: []string{value}}
	return msg, nil
}

// plainMessage makes the message of a record without encryption; see message.
func plainMessage(subject string, s stamp, events [][]byte, result []byte) *nats.Msg {
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
