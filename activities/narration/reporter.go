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

// Reporter turns the progress that a tool or a provider reports into events on its lane. It
// implements [tools.Reporter], bounds the reports of a call, and checks that patches apply. The ID
// of an activity derives from the call or the step, and from the name that the tool gives it, so
// all attempts use the same one. It is safe for concurrent use. The caller of the tool owns it and
// calls Close.
type Reporter struct {
	// ctx is that of the attempt: it bounds how long a report waits for the log.
	ctx context.Context
	run stream.Run
	// source is the ID of the call or of the step, emit writes the events.
	source string
	emit   emit

	// mu guards the members below, and makes the calls of emit sequential. state is the shared
	// state as the call has changed it, patches its changes, activities the activities by name with
	// their present content. reports and bytes count what was reported. isClosed is set by Close.
	mu         sync.Mutex
	state      json.RawMessage
	patches    []json.RawMessage
	activities map[string]*agui.ActivitySnapshot
	reports    int
	bytes      int
	isClosed   bool
}

// emit writes events to a lane. It is called by one goroutine at a time.
type emit func(ctx context.Context, events ...agui.Event) error

// errClosed is the error of a report after Close.
var errClosed = errors.New("activities: the tool call is over")

// NewReporter returns the reporter of one call or step. ctx is the attempt's, state the shared
// state when the call begins (nil if it reports none), source the ID from which IDs of activities
// derive.
func NewReporter(ctx context.Context, run stream.Run, source string, state json.RawMessage, emit emit) *Reporter {
	return &Reporter{ctx: ctx, run: run, source: source, emit: emit, state: state, activities: map[string]*agui.ActivitySnapshot{}}
}

// Close ends the reports: later ones fail with errClosed. It is for a tool that was abandoned and
// still runs, whose lane may have another writer.
func (r *Reporter) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
}

// State implements [tools.Reporter]. Changes of concurrent calls are not in it.
func (r *Reporter) State() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Activity implements [tools.Reporter]. Content that is no JSON object, or exceeds a bound, is a
// *tools.ReportError.
func (r *Reporter) Activity(name, kind string, content any) error {
	if err := errors.Join(checkName("the name of an activity", name), checkName("the type of an activity", kind)); err != nil {
		return err
	}
	object, err := encodeReport(content)
	if err != nil {
		return err
	}
	if object[0] != '{' {
		return reportError("the content of an activity must be an object")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, exists := r.activities[name]; !exists && len(r.activities) == tools.MaxActivities {
		return reportError("the call already has %d activities", tools.MaxActivities)
	}
	snapshot := &agui.ActivitySnapshot{MessageID: r.run.Identify("act", r.source+"/"+name), ActivityType: kind, Content: object}
	if err := r.send(len(object), snapshot); err != nil {
		return err
	}
	// PatchActivity changes the stored activity. An event must not change once it is emitted.
	stored := *snapshot
	r.activities[name] = &stored
	return nil
}

// PatchActivity implements [tools.Reporter]. The activity must be one of this call.
func (r *Reporter) PatchActivity(name string, ops ...tools.Op) error {
	return r.patchActivity(name, ops)
}

// patchActivity applies a JSON Patch to an activity: operations is a list of tools.Op, or the patch
// of a provider. The event is emitted before the content is taken over, so a report that fails
// changes nothing.
func (r *Reporter) patchActivity(name string, operations any) error {
	patch, err := encodeReport(operations)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	activity := r.activities[name]
	if activity == nil {
		return reportError("the call has no activity %.64q", name)
	}
	next, err := applyOps(activity.Content, patch, tools.MaxActivity)
	if err != nil {
		return err
	}
	if next[0] != '{' {
		return reportError("the content of an activity must stay an object")
	}
	err = r.send(len(patch), &agui.ActivityDelta{MessageID: activity.MessageID, ActivityType: activity.ActivityType, Patch: patch})
	if err == nil {
		activity.Content = next
	}
	return err
}

// PatchState implements [tools.Reporter]. The patch is checked against the state of this call only,
// because concurrent calls may change the state of the thread meanwhile.
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
		r.state, r.patches = next, append(r.patches, patch)
	}
	return err
}

// StatePatches returns the changes of the state that the call has reported, in their order.
func (r *Reporter) StatePatches() []json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.patches
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

// Raw implements [tools.Reporter]. The source may be empty.
func (r *Reporter) Raw(source string, event any) error {
	if len(source) > tools.MaxReportName {
		return reportError("the source of an event must be at most %d bytes", tools.MaxReportName)
	}
	raw, err := encodeReport(event)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.send(len(raw), &agui.Raw{Event: raw, Source: source})
}

// send checks the bounds and emits an event whose JSON has size bytes. r.mu must be held. A report
// that fails does not count.
func (r *Reporter) send(size int, e agui.Event) error {
	switch {
	case r.isClosed:
		return errClosed
	case r.reports == tools.MaxReports:
		return reportError("the call has already made %d reports", tools.MaxReports)
	case r.bytes+size > tools.MaxReported:
		return reportError("the reports of the call would have more than %d bytes", tools.MaxReported)
	}
	// emit may block while the log is slow. Other reports of the call wait for r.mu meanwhile.
	if err := r.emit(r.ctx, e); err != nil {
		return err
	}
	r.reports++
	r.bytes += size
	return nil
}

// encodeReport encodes a reported value as JSON, within the bounds of one report. The error is a
// *tools.ReportError.
func encodeReport(v any) (json.RawMessage, error) {
	raw, err := compact(v)
	if err != nil {
		return nil, &tools.ReportError{Reason: "the value cannot be encoded", Err: err}
	}
	if len(raw) > tools.MaxReport {
		return nil, reportError("the value has %d bytes, more than %d", len(raw), tools.MaxReport)
	}
	if agui.TooDeep(raw) {
		return nil, reportError("the value is nested deeper than %d levels", agui.MaxDepth)
	}
	return raw, nil
}

// compact encodes a value as JSON without white space, and without the escapes that only HTML
// needs.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// applyOps returns a document after a patch; limit bounds it in bytes. It refuses operations that
// do not apply: clients would skip them, and their state would differ from the thread's. A document
// that is already beyond the limit may still shrink.
func applyOps(doc, patch json.RawMessage, limit int) (json.RawMessage, error) {
	next, err := agui.Patch(doc, patch)
	if err != nil {
		return nil, &tools.ReportError{Reason: "the operations do not apply", Err: err}
	}
	if len(next) > limit && len(next) > len(doc) {
		return nil, reportError("the changed value would have %d bytes, more than %d", len(next), limit)
	}
	return next, nil
}

// checkName checks the length of a name; what is for the error.
func checkName(what, name string) error {
	if name == "" || len(name) > tools.MaxReportName {
		return reportError("%s must have 1 to %d bytes", what, tools.MaxReportName)
	}
	return nil
}

// reportError returns the error of an invalid report.
func reportError(format string, args ...any) error {
	return &tools.ReportError{Reason: fmt.Sprintf(format, args...)}
}
