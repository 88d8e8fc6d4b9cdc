package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/perdure/perdure/llm"
)

const (
	// DefaultTimeout is the timeout of a call if the [Spec] has none.
	DefaultTimeout = 30 * time.Second

	// DefaultMaxResult is the maximum length of a result, in bytes, if the [Spec] has none.
	DefaultMaxResult = 1 << 20

	// MaxAttempts is the maximum of [Spec.Attempts]. DefaultAttempts is the default for an
	// idempotent tool.
	MaxAttempts     = 8
	DefaultAttempts = 3

	// minMaxResult is the minimum of [Spec.MaxResult], maxDescription the maximum length of a
	// description, in bytes.
	minMaxResult   = 1 << 10
	maxDescription = 16 << 10
)

// nameRule matches the tool names that all model providers accept.
var nameRule = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// queueRule matches valid task queues. The length is limited because each call carries the name.
var queueRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

// Tool is a function that a model may call.
//
// Call must be safe for concurrent use. It must return soon after ctx has ended: a caller cannot
// stop it, and abandons a call that does not return. A failure is a [Result] with IsError. An error
// means that the call has no outcome; the caller may then repeat the call of an idempotent tool.
type Tool interface {
	// Spec returns the description of the tool. It never changes.
	Spec() Spec
	// Call runs the tool once.
	Call(ctx context.Context, call Call) (Result, error)
}

// Spec describes a tool for models, and for the worker that runs it. The zero value of a field
// means its default.
type Spec struct {
	// Name is the name that models see: [a-zA-Z0-9_-]{1,64}.
	Name string `json:"name"`

	// Description tells models what the tool does and when to use it.
	Description string `json:"description,omitempty"`

	// Parameters is the JSON Schema of the arguments, which are always an object. Empty means any
	// object. References to other documents are rejected. It must not be modified.
	Parameters json.RawMessage `json:"parameters,omitempty"`

	// Timeout limits the duration of one call; 0 means DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`

	// MaxResult limits Result.Content, in bytes; 0 means DefaultMaxResult, the minimum is 1 KiB.
	MaxResult int `json:"maxResult,omitempty"`

	// Idempotent declares that calling twice has the same effect as calling once, so a call without
	// an outcome may be repeated.
	Idempotent bool `json:"idempotent,omitempty"`

	// Attempts is the maximum number of attempts for a call without an outcome, 1 to MaxAttempts. 0
	// means DefaultAttempts for an idempotent tool. A tool that is not idempotent has exactly one
	// attempt. Attempts that end because their worker stops do not count.
	Attempts int `json:"attempts,omitempty"`

	// TaskQueue is the Temporal task queue whose workers run the tool: 1 to 32 letters, digits, . _
	// and -, beginning with a letter or digit; empty means the main queue.
	TaskQueue string `json:"taskQueue,omitempty"`

	// Sequence names a sequence: calls of one turn with the same Sequence run one after the other,
	// in the model's order. Empty means that calls run concurrently.
	Sequence string `json:"sequence,omitempty"`
}

// Call is one call of a tool, as the model requested it.
type Call struct {
	// ID is the ID of the tool call.
	ID string

	// Arguments is the JSON object that the model wrote. Empty means {}.
	Arguments json.RawMessage

	// IdempotencyKey is the same for all attempts of this call, and different for every other call.
	// A tool passes it to the services that it calls.
	IdempotencyKey string

	// Run is the run of the call, and for whom it acts. The zero value is a call outside of a run.
	Run Run

	// Reporter receives the progress of the tool; nil discards it.
	Reporter Reporter

	// Asks reports whether the caller supports questions: it repeats a call that fails with a
	// *[Raised] once the question is answered. Answers are the answers to the questions of this
	// call so far, in order.
	Asks    bool
	Answers []Answer
}

// Result is the outcome of a call.
type Result struct {
	// Content is the text for the model, often JSON. The guard makes it valid UTF-8.
	Content string

	// Parts follow the text: more text, or media. Models that accept no media in tool results
	// receive only the text. At most MaxParts and MaxMedia are kept; a note informs the model about
	// omitted ones.
	Parts []llm.Part

	// IsError marks a failure, which Content describes.
	IsError bool

	// Cause is the error of a failure, for operators; the model never receives it. It is a
	// *PanicError if the tool panicked. It can be nil.
	Cause error
}

// Failed returns the result of a failed call. The text is for the model: what is wrong, and what
// would be right. It is truncated after 4 KiB.
func Failed(text string) Result {
	return Result{Content: bounded(text, maxFailure), IsError: true}
}

// UnavailableError is the error of a call without an outcome, because a server is unreachable or
// overloaded. Another attempt can succeed. After the last attempt the model receives up to 4 KiB of
// Text.
type UnavailableError struct {
	Text       string        // for the model
	RetryAfter time.Duration // pause before the next attempt; 0 = the caller decides
	Err        error         // for operators; may be nil
}

// Error implements error. It omits Text, which is for the model.
func (e *UnavailableError) Error() string {
	if e.Err != nil {
		return "unavailable: " + e.Err.Error()
	}
	return "unavailable"
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// PanicError is the Cause of a result whose tool panicked.
type PanicError struct {
	Value any    // argument of panic
	Stack []byte // stack trace of the goroutine
}

// Error omits the stack, because the text can be shown to users.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// idempotencyKey is the context key of an idempotency key.
type idempotencyKey struct{}

// IdempotencyKey returns the idempotency key of the call that ctx belongs to, or "" outside of a
// call. Functions of [Func] use it instead of Call.IdempotencyKey.
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// SpecError is a mistake in the definition of a tool or source.
type SpecError struct {
	Tool   string
	Reason string
	Err    error // may be nil
}

// Error implements error.
func (e *SpecError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("tool %q: %s: %v", e.Tool, e.Reason, e.Err)
	}
	return fmt.Sprintf("tool %q: %s", e.Tool, e.Reason)
}

// Unwrap returns the cause.
func (e *SpecError) Unwrap() error { return e.Err }

// complete validates a spec and returns it with its defaults. The error is a *SpecError.
func (s Spec) complete() (Spec, error) {
	switch {
	case !nameRule.MatchString(s.Name):
		return s, &SpecError{Tool: s.Name, Reason: "the name must be 1 to 64 letters, digits, _ or -"}
	case len(s.Description) > maxDescription:
		return s, &SpecError{Tool: s.Name, Reason: fmt.Sprintf("the description is longer than %d bytes", maxDescription)}
	case s.Timeout < 0:
		return s, &SpecError{Tool: s.Name, Reason: "the timeout must not be negative"}
	case s.MaxResult != 0 && s.MaxResult < minMaxResult:
		return s, &SpecError{Tool: s.Name, Reason: fmt.Sprintf("the result limit must be at least %d bytes", minMaxResult)}
	case s.Attempts < 0 || s.Attempts > MaxAttempts:
		return s, &SpecError{Tool: s.Name, Reason: fmt.Sprintf("the attempts must be 1 to %d", MaxAttempts)}
	case s.TaskQueue != "" && !queueRule.MatchString(s.TaskQueue):
		return s, &SpecError{Tool: s.Name, Reason: "the task queue must be 1 to 32 letters, digits, ., _ or -, and begin with a letter or digit"}
	case s.Attempts > 1 && !s.Idempotent:
		return s, &SpecError{Tool: s.Name, Reason: "only an idempotent tool may be attempted more than once"}
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.MaxResult == 0 {
		s.MaxResult = DefaultMaxResult
	}
	if s.Attempts == 0 {
		s.Attempts = 1
		if s.Idempotent {
			s.Attempts = DefaultAttempts
		}
	}
	if len(s.Parameters) == 0 {
		s.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	return s, nil
}
