package tools

import (
	"context"
	"encoding/json"
	"fmt"
)

// What one call may report. A report beyond that is refused with a *ReportError, and changes nothing.
const (
	// MaxReports is how many reports one call may make.
	MaxReports = 1000
	// MaxReport bounds the JSON of one report in bytes.
	MaxReport = 64 << 10
	// MaxReported bounds the JSON of all reports of a call in bytes.
	MaxReported = 4 << 20
	// MaxActivities is how many activities one call may begin.
	MaxActivities = 32
	// MaxActivity bounds the content of an activity in bytes, MaxState the shared state.
	MaxActivity = 256 << 10
	MaxState    = 1 << 20
	// MaxReportName bounds names and types in bytes.
	MaxReportName = 128
)

// Reporter is how a tool says more than its result, while it runs. Whoever watches the run sees it at
// once. The model does not, except for the state of an agent that is allowed to see it.
//
// Reports count as soon as the call has come to its end, whatever its result. If the process dies
// before, they are taken back, and the tool, if it is idempotent, is called anew.
//
// All methods may be called concurrently until the call returns. They wait while the log is slower
// than the tool. An error is a *ReportError if the report is not acceptable; any other means that
// the call is over.
type Reporter interface {
	// Activity shows an activity, or replaces it: a message for people that changes as the work goes
	// on. The name tells the activities of this call apart; kind is what clients choose their view by;
	// content is encoded as a JSON object.
	Activity(name, kind string, content any) error

	// PatchActivity changes the content of an activity that this call shows.
	PatchActivity(name string, ops ...Op) error

	// State is the state that the agent shares with its clients: as it was when the call began, with
	// what this call has changed. It must not be modified.
	State() json.RawMessage

	// PatchState changes the shared state: all operations or, if one does not apply, none. Calls that
	// run at the same time do so too, so a change of what another one has moved is lost: let each
	// have members of its own, or append.
	PatchState(ops ...Op) error

	// Custom sends an application's own event. Names should begin with a prefix of the application.
	Custom(name string, value any) error

	// Raw passes an event on that came from elsewhere, such as another agent's.
	Raw(source string, event any) error
}

// Report returns the reporter of the call that ctx belongs to. Outside of a call, or where nobody
// listens, it is one that does nothing and has the empty state.
func Report(ctx context.Context) Reporter {
	if r, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		return r
	}
	return silent{}
}

type reporterKey struct{}

// Op is an operation of a JSON Patch (RFC 6902). [Set], [Append] and [Remove] make the common ones.
type Op struct {
	Op   string // add, remove, replace, move, copy or test
	Path string // a JSON pointer (RFC 6901)
	From string // of move and copy
	// Value, of add, replace and test, is encoded as JSON.
	Value any
}

// Set gives a member of an object a value, whether it has one or not. The object must exist.
func Set(path string, value any) Op { return Op{Op: "add", Path: path, Value: value} }

// Append puts a value behind the last one of a list. The list must exist.
func Append(path string, value any) Op { return Op{Op: "add", Path: path + "/-", Value: value} }

// Remove takes a member or an element out. It must exist.
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

// ReportError says why a report was refused.
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

// silent is the reporter where nobody listens.
type silent struct{}

func (silent) Activity(string, string, any) error { return nil }
func (silent) PatchActivity(string, ...Op) error  { return nil }
func (silent) State() json.RawMessage             { return json.RawMessage("{}") }
func (silent) PatchState(...Op) error             { return nil }
func (silent) Custom(string, any) error           { return nil }
func (silent) Raw(string, any) error              { return nil }
