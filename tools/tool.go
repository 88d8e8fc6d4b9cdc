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

	// DefaultMaxResult is the most bytes of a result if the [Spec] has no bound.
	DefaultMaxResult = 1 << 20

	// MaxAttempts is the most attempts of a [Spec]. DefaultAttempts is the default of an idempotent
	// tool.
	MaxAttempts     = 8
	DefaultAttempts = 3

	minMaxResult   = 1 << 10
	maxDescription = 16 << 10
)

// nameRule is what all model providers accept.
var nameRule = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// queueRule keeps names of task queues short, because each call carries them.
var queueRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

// Tool is a function that a model may call.
//
// Call must be safe for concurrent use, and must return soon after ctx has ended: a caller cannot
// stop it, and abandons it. A tool reports a failure as a [Result] with IsError. An error means
// that the call has no outcome; an idempotent tool may then be called again.
type Tool interface {
	// Spec describes the tool. It never changes.
	Spec() Spec
	// Call runs the tool once.
	Call(ctx context.Context, call Call) (Result, error)
}

// Spec is the description of a tool for models, and for the worker that runs it.
type Spec struct {
	// Name is the name for models: [a-zA-Z0-9_-]{1,64}.
	Name string `json:"name"`

	// Description tells models what the tool does and when to use it.
	Description string `json:"description,omitempty"`

	// Parameters is the JSON Schema of the arguments, which are always an object. Empty means any
	// object. References to other documents are refused. It must not be modified.
	Parameters json.RawMessage `json:"parameters,omitempty"`

	// Timeout bounds one call; 0 means DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`

	// MaxResult bounds Result.Content in bytes; 0 means DefaultMaxResult, the minimum is 1 KiB.
	MaxResult int `json:"maxResult,omitempty"`

	// Idempotent tells that calling twice has the same effect as calling once, so that a call
	// without an outcome may be repeated.
	Idempotent bool `json:"idempotent,omitempty"`

	// Attempts is how often a call without an outcome may be made, 1 to MaxAttempts; 0 means
	// DefaultAttempts for an idempotent tool, else 1, which is then the maximum. Attempts that end
	// with their worker do not count.
	Attempts int `json:"attempts,omitempty"`

	// TaskQueue is the Temporal task queue whose workers run the tool: 1 to 32 letters, digits, . _
	// and -, beginning with a letter or digit; empty means the main queue.
	TaskQueue string `json:"taskQueue,omitempty"`

	// Sequence names a sequence of calls: calls of one turn with the same Sequence run one after
	// the other, in the model's order. Empty means that calls run concurrently.
	Sequence string `json:"sequence,omitempty"`
}

// Call is one call of a tool.
type Call struct {
	// ID is the ID of the tool call.
	ID string

	// Arguments is the JSON object that the model wrote. Empty means {}.
	Arguments json.RawMessage

	// IdempotencyKey is the same for every attempt of this call, and differs for every other call.
	// A tool passes it to the services that it calls.
	IdempotencyKey string

	// Reporter receives the reports of the tool; nil = nobody does.
	Reporter Reporter

	// Asks tells that the tool may ask people: a call that fails with a *[Raised] is made again
	// when its question is answered. Answers are those of its questions so far, in order.
	Asks    bool
	Answers []Answer
}

// Result is the outcome of a call.
type Result struct {
	// Content is the text for the model, often JSON. It is valid UTF-8.
	Content string

	// Parts follow the text: more text, or media. Models that accept no media in results receive
	// the text only. At most MaxParts and MaxMedia are kept; the model is told about the rest.
	Parts []llm.Part

	// IsError tells that Content describes a failure.
	IsError bool

	// Cause is the error of a failure, for operators; the model never receives it. It is a
	// *PanicError if the tool panicked. It may be nil.
	Cause error
}

// Failed returns the result of a tool that has failed. The text is for the model: what is wrong and
// what would be right. It is cut after 4 KiB.
func Failed(text string) Result {
	return Result{Content: bounded(text, maxFailure), IsError: true}
}

// UnavailableError is the error of a call without an outcome, because a server cannot be reached or
// is too busy. Another attempt may succeed. The model receives up to 4 KiB of Text if there is
// none.
type UnavailableError struct {
	Text       string
	RetryAfter time.Duration // pause before another attempt; 0 = the caller decides
	Err        error         // for operators; may be nil
}

func (e *UnavailableError) Error() string {
	if e.Err != nil {
		return "unavailable: " + e.Err.Error()
	}
	return "unavailable"
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// PanicError is the Cause of a result whose tool panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error omits the stack, because the text may be shown anywhere.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// idempotencyKey is the key of an idempotency key in a context.
type idempotencyKey struct{}

// IdempotencyKey returns the key of the call of ctx, or "" outside of a call. A [Func] reads
// [Call].IdempotencyKey with it.
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// SpecError is a mistake in the description of a tool.
type SpecError struct {
	Tool   string
	Reason string
	Err    error // may be nil
}

func (e *SpecError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("tool %q: %s: %v", e.Tool, e.Reason, e.Err)
	}
	return fmt.Sprintf("tool %q: %s", e.Tool, e.Reason)
}

func (e *SpecError) Unwrap() error { return e.Err }

// complete validates a spec and sets its defaults.
func (s Spec) complete() (Spec, error) {
	switch {
	case !nameRule.MatchString(s.Name):
		return s, &SpecError{Tool: s.Name, Reason: "the name must be 1 to 64 letters, digits, _ or -"}
	case len(s.Description) > maxDescription:
		return s, &SpecError{Tool: s.Name, Reason: fmt.Sprintf("the description is longer than %d bytes", maxDescription)}
	case s.Timeout < 0:
		return s, &SpecError{Tool: s.Name, Reason: "the timeout must not be negative"}
	case s.MaxResult != 0 && s.MaxResult < minMaxResult:
		return s, &SpecError{Tool: s.Name, Reason: fmt.Sprintf("the result must be allowed at least %d bytes", minMaxResult)}
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
