package narration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// Reporter turns the progress that a tool or a provider reports into events on its lane. The ID of
// an activity derives from the call or the step, and from the name that the tool gives it, so every
// attempt uses the same one. It is safe for concurrent use.
type Reporter struct {
	ctx    context.Context // of the attempt, which bounds how long a report waits for the log
	run    stream.Run
	source string // the ID of the call or the step
	emit   emit

	mu         sync.Mutex
	state      json.RawMessage
	activities map[string]*agui.ActivitySnapshot // by their names, as they are now
	reports    int
	bytes      int
	over       bool
}

// emit logs events.
type emit func(ctx context.Context, events ...agui.Event) error

var errCallOver = errors.New("activities: the tool call is over")

// NewReporter returns the reporter of a tool call. state is the shared state at its beginning,
// source names the call in the log, and emit writes events. Its methods are safe for concurrent
// use.
func NewReporter(ctx context.Context, run stream.Run, source string, state json.RawMessage, emit emit) *Reporter {
	return &Reporter{ctx: ctx, run: run, source: source, emit: emit, state: state, activities: map[string]*agui.ActivitySnapshot{}}
}

// Close ends the reports of a tool that does not stop. Later ones fail.
func (r *Reporter) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// State implements [tools.Reporter].
func (r *Reporter) State() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Activity implements [tools.Reporter].
func (r *Reporter) Activity(name, kind string, content any) error {
	if err := errors.Join(checkName("the name of an activity", name), checkName("the type of an activity", kind)); err != nil {
		return err
	}
	object, err := encodeReport(content)
	if err != nil {
		return err
	}
	if object[0] != '{' {
		return refuse("the content of an activity must be an object")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.activities[name]; !known && len(r.activities) == tools.MaxActivities {
		return refuse("the call has %d activities already", tools.MaxActivities)
	}
	shown := &agui.ActivitySnapshot{MessageID: r.run.Identify("act", r.source+"/"+name), ActivityType: kind, Content: object}
	if err := r.send(len(object), shown); err != nil {
		return err
	}
	now := *shown // an event must not change once it is emitted
	r.activities[name] = &now
	return nil
}

// PatchActivity implements [tools.Reporter].
func (r *Reporter) PatchActivity(name string, ops ...tools.Op) error {
	return r.patchActivity(name, ops)
}

func (r *Reporter) patchActivity(name string, operations any) error {
	patch, err := encodeReport(operations)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	activity := r.activities[name]
	if activity == nil {
		return refuse("the call has no activity %.64q", name)
	}
	next, err := applyOps(activity.Content, patch, tools.MaxActivity)
	if err != nil {
		return err
	}
	if next[0] != '{' {
		return refuse("the content of an activity must stay an object")
	}
	err = r.send(len(patch), &agui.ActivityDelta{MessageID: activity.MessageID, ActivityType: activity.ActivityType, Patch: patch})
	if err == nil {
		activity.Content = next
	}
	return err
}

// PatchState implements [tools.Reporter].
func (r *Reporter) PatchState(ops ...tools.Op) error {
	patch, err := encodeReport(ops)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := applyOps(r.state, patch, tools.MaxState)
	if err != nil {
		return err
	}
	err = r.send(len(patch), &agui.StateDelta{Delta: patch})
	if err == nil {
		r.state = next
	}
	return err
}

// Custom implements [tools.Reporter].
func (r *Reporter) Custom(name string, value any) error {
	if err := checkName("the name of an event", name); err != nil {
		return err
	}
	raw, err := encodeReport(value)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.send(len(raw), &agui.Custom{Name: name, Value: raw})
}

// Raw implements [tools.Reporter].
func (r *Reporter) Raw(source string, event any) error {
	if len(source) > tools.MaxReportName {
		return refuse("the source of an event must be at most %d bytes", tools.MaxReportName)
	}
	raw, err := encodeReport(event)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.send(len(raw), &agui.Raw{Event: raw, Source: source})
}

// send emits a report of some size. r.mu is held: an attempt takes one writer at a time.
func (r *Reporter) send(size int, e agui.Event) error {
	switch {
	case r.over:
		return errCallOver
	case r.reports == tools.MaxReports:
		return refuse("the call has made %d reports already", tools.MaxReports)
	case r.bytes+size > tools.MaxReported:
		return refuse("the reports of the call would have more than %d bytes", tools.MaxReported)
	}
	if err := r.emit(r.ctx, e); err != nil {
		return err
	}
	r.reports++
	r.bytes += size
	return nil
}

// encodeReport encodes a reported value.
func encodeReport(v any) (json.RawMessage, error) {
	raw, err := compact(v)
	if err != nil {
		return nil, &tools.ReportError{Reason: "it cannot be encoded", Err: err}
	}
	if len(raw) > tools.MaxReport {
		return nil, refuse("it has %d bytes, more than %d", len(raw), tools.MaxReport)
	}
	if agui.TooDeep(raw) {
		return nil, refuse("it is nested deeper than %d levels", agui.MaxDepth)
	}
	return raw, nil
}

// compact encodes JSON without the escapes that only HTML needs.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// applyOps refuses operations that clients would skip: only the tool can mend them.
func applyOps(doc, patch json.RawMessage, limit int) (json.RawMessage, error) {
	next, err := agui.Patch(doc, patch)
	if err != nil {
		return nil, &tools.ReportError{Reason: "the operations do not apply", Err: err}
	}
	if len(next) > limit && len(next) > len(doc) {
		return nil, refuse("what is changed would have %d bytes, more than %d", len(next), limit)
	}
	return next, nil
}

func checkName(what, name string) error {
	if name == "" || len(name) > tools.MaxReportName {
		return refuse("%s must have 1 to %d bytes", what, tools.MaxReportName)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &tools.ReportError{Reason: fmt.Sprintf(format, args...)}
}
