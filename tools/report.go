package tools

import (
	"context"
	"encoding/json"
	"fmt"
)

// Bounds of the reports of one call. A report beyond them is refused with a *ReportError, and
// changes nothing.
const (
	// MaxReports is how many reports a call may make.
	MaxReports = 1000
	// MaxReport bounds the JSON of one report in bytes.
	MaxReport = 64 << 10
	// MaxReported bounds the JSON of all reports of a call in bytes.
	MaxReported = 4 << 20
	// MaxActivities is how many activities a call may create.
	MaxActivities = 32
	// MaxActivity bounds the content of an activity in bytes, MaxState the shared state.
	MaxActivity = 256 << 10
	MaxState    = 1 << 20
	// MaxReportName bounds names and types in bytes.
	MaxReportName = 128
)

// Reporter reports the progress of a tool to clients, while the tool runs. The model does not
// receive reports, except the state if its agent may see it.
//
// Reports become permanent when the call ends, whatever its result. If the process dies before,
// they are retracted, and an idempotent tool is called again.
//
// All methods are safe for concurrent use until the call returns. They block while the log is
// slower than the tool. A *ReportError means that the report is invalid; any other error means that
// the call is over.
type Reporter interface {
	// Activity shows or replaces an activity: a message for people that changes as the work
	// proceeds. The name identifies the activity within the call, clients choose a view by kind,
	// and content is encoded as a JSON object.
	Activity(name, kind string, content any) error

	// PatchActivity changes the content of an activity of this call.
	PatchActivity(name string, ops ...Op) error

	// State returns the state that the agent shares with its clients, as of the beginning of the
	// call and with the changes of this call. It must not be modified.
	State() json.RawMessage

	// PatchState changes the shared state: all operations or, if one does not apply, none.
	// Concurrent calls change it too, and overwrite each other's members: use different members, or
	// append.
	PatchState(ops ...Op) error

	// Custom sends an event of the application. Its name should have a prefix of the application.
	Custom(name string, value any) error

	// Raw forwards an event of another system, such as another agent.
	Raw(source string, event any) error
}

// Report returns the reporter of the call of ctx. Outside of a call, or if nobody receives reports,
// it does nothing and has an empty state.
func Report(ctx context.Context) Reporter {
	if r, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		return r
	}
	return silent{}
}

// reporterKey is the key of a Reporter in a context.
type reporterKey struct{}

// Op is an operation of a JSON Patch (RFC 6902). [Set], [Append] and [Remove] make the common ones.
type Op struct {
	Op   string // add, remove, replace, move, copy or test
	Path string // a JSON pointer (RFC 6901)
	From string // of move and copy
	// Value, of add, replace and test, is encoded as JSON.
	Value any
}

// Set sets a member of an object, which must exist; the member need not exist.
func Set(path string, value any) Op { return Op{Op: "add", Path: path, Value: value} }

// Append adds a value to the end of a list, which must exist.
func Append(path string, value any) Op { return Op{Op: "add", Path: path + "/-", Value: value} }

// Remove removes a member or an element, which must exist.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// MarshalJSON implements [json.Marshaler].
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

// ReportError is why a report was refused.
type ReportError struct {
	Reason string
	Err    error // may be nil
}

func (e *ReportError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the report was refused: %s: %v", e.Reason, e.Err)
	}
	return "the report was refused: " + e.Reason
}

func (e *ReportError) Unwrap() error { return e.Err }

// silent is the reporter if nobody receives reports.
type silent struct{}

func (silent) Activity(string, string, any) error { return nil }
func (silent) PatchActivity(string, ...Op) error  { return nil }
func (silent) State() json.RawMessage             { return json.RawMessage("{}") }
func (silent) PatchState(...Op) error             { return nil }
func (silent) Custom(string, any) error           { return nil }
func (silent) Raw(string, any) error              { return nil }
