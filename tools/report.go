package tools

import (
	"context"
	"encoding/json"
	"fmt"
)

// Limits for the reports of one call. A report that exceeds one fails with a *ReportError, and has
// no effect.
const (
	// MaxReports is the maximum number of reports of a call.
	MaxReports = 1000
	// MaxReport is the maximum size of one report, in bytes of JSON.
	MaxReport = 64 << 10
	// MaxReported is the maximum size of all reports of a call, in bytes of JSON.
	MaxReported = 4 << 20
	// MaxActivities is the maximum number of activities that a call may create.
	MaxActivities = 32
	// MaxActivity is the maximum size of an activity's content, MaxState that of the shared state,
	// in bytes of JSON.
	MaxActivity = 256 << 10
	MaxState    = 1 << 20
	// MaxReportName is the maximum length of names and types, in bytes.
	MaxReportName = 128
)

// Reporter reports the progress of a tool to clients while the tool runs. The model does not
// receive reports, except for the state if its agent may see it.
//
// Reports become permanent when the call ends, whatever its result. If the process ends earlier,
// they are retracted, and an idempotent tool is called again.
//
// All methods are safe for concurrent use until the call returns. They block while the log is
// slower than the tool. A *ReportError means that the report is invalid; any other error means that
// the call has ended.
type Reporter interface {
	// Activity shows or replaces an activity: an AG-UI activity message that changes as the work
	// proceeds. name identifies the activity within the call. kind is the type by which clients
	// choose a view. content is encoded as a JSON object.
	Activity(name, kind string, content any) error

	// PatchActivity applies a JSON Patch to the content of an activity of this call.
	PatchActivity(name string, ops ...Op) error

	// State returns the state that the agent shares with its clients: the state at the beginning of
	// the call, with the changes of this call. It must not be modified.
	State() json.RawMessage

	// PatchState changes the shared state. It applies all operations or, if one of them fails,
	// none. Concurrent calls change the same state. Use different members, or append, so that they
	// do not overwrite each other.
	PatchState(ops ...Op) error

	// Custom sends an AG-UI CUSTOM event. The name should have a prefix of the application.
	Custom(name string, value any) error

	// Raw sends an AG-UI RAW event: an event of another system, such as another agent.
	Raw(source string, event any) error
}

// Report returns the Reporter of the call that ctx belongs to. Outside of a call, or if the call
// has no Reporter, it returns one that discards reports and has an empty state.
func Report(ctx context.Context) Reporter {
	if r, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		return r
	}
	return silent{}
}

// reporterKey is the context key of a Reporter.
type reporterKey struct{}

// Op is an operation of a JSON Patch (RFC 6902). [Set], [Append] and [Remove] return the common
// ones.
type Op struct {
	Op    string // add, remove, replace, move, copy or test
	Path  string // a JSON pointer (RFC 6901)
	From  string // source pointer of move and copy
	Value any
}

// Set returns the operation that sets a member of an object. The object must exist; the member need
// not exist.
func Set(path string, value any) Op { return Op{Op: "add", Path: path, Value: value} }

// Append returns the operation that appends a value to an array, which must exist.
func Append(path string, value any) Op { return Op{Op: "add", Path: path + "/-", Value: value} }

// Remove returns the operation that removes a member or an element, which must exist.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// MarshalJSON implements [json.Marshaler]. It writes only the members that RFC 6902 defines for the
// operation.
func (o Op) MarshalJSON() ([]byte, error) {
	switch o.Op {
	case "remove":
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	case "move", "copy":
		return json.Marshal(struct {
			Op   string `json:"op"`
			From string `json:"from"`
			Path string `json:"path"`
		}{o.Op, o.From, o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

// ReportError is the error of an invalid report.
type ReportError struct {
	Reason string
	Err    error // may be nil
}

// Error implements error.
func (e *ReportError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the report was refused: %s: %v", e.Reason, e.Err)
	}
	return "the report was refused: " + e.Reason
}

// Unwrap returns the cause.
func (e *ReportError) Unwrap() error { return e.Err }

// silent is the [Reporter] that discards all reports.
type silent struct{}

func (silent) Activity(string, string, any) error { return nil }
func (silent) PatchActivity(string, ...Op) error  { return nil }
func (silent) State() json.RawMessage             { return json.RawMessage("{}") }
func (silent) PatchState(...Op) error             { return nil }
func (silent) Custom(string, any) error           { return nil }
func (silent) Raw(string, any) error              { return nil }
