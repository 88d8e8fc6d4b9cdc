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
	// DefaultTimeout is how long a call may take when its [Spec] does not say.
	DefaultTimeout = 30 * time.Second

	// DefaultMaxResult is how many bytes a result may have when its [Spec] does not say.
	DefaultMaxResult = 1 << 20

	// MaxAttempts is how many attempts a [Spec] may allow, DefaultAttempts how many an idempotent
	// tool has when it does not say.
	MaxAttempts     = 8
	DefaultAttempts = 3

	minMaxResult   = 1 << 10
	maxDescription = 16 << 10
)

// nameRule is what the model providers have in common.
var nameRule = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// queueRule keeps names of task queues short: they travel with each call.
var queueRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

// Tool is something a model may ask to have done.
//
// Implementations are called concurrently. They must return soon after ctx has
// ended; nothing can stop one that does not, so a caller that cannot wait has
// to abandon it. They report what went wrong as a [Result] with IsError; an
// error means that the call did not come to an end, and may be retried if the
// tool is idempotent.
type Tool interface {
	// Spec describes the tool. It never changes during the tool's life.
	Spec() Spec
	// Call runs the tool once.
	Call(ctx context.Context, call Call) (Result, error)
}

// Spec is what the model, and whoever runs the tool, must know about it.
type Spec struct {
	// Name is what the model calls it by: [a-zA-Z0-9_-]{1,64}.
	Name string `json:"name"`

	// Description tells the model what the tool does and when to use it.
	Description string `json:"description,omitempty"`

	// Parameters is the JSON Schema of the arguments, which are always an
	// object. Empty means any object. References to other documents are refused. It must
	// not be modified.
	Parameters json.RawMessage `json:"parameters,omitempty"`

	// Timeout bounds one call; 0 means DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`

	// MaxResult bounds Result.Content in bytes; 0 means DefaultMaxResult, the
	// least is 1 KiB.
	MaxResult int `json:"maxResult,omitempty"`

	// Idempotent says that calling twice does no more than calling once, so
	// that a call of unknown outcome may simply be made again.
	Idempotent bool `json:"idempotent,omitempty"`

	// Attempts is how often one call may be made if it comes to no end, 1 to MaxAttempts; 0 means
	// DefaultAttempts for a tool that is idempotent, and 1 for one that is not, which may not have
	// more. Attempts that end with their worker do not count.
	Attempts int `json:"attempts,omitempty"`

	// TaskQueue is the Temporal task queue whose workers run the tool, 1 to 32 letters, digits, . _ and -,
	// a letter or digit first; empty means that of all workers.
	TaskQueue string `json:"taskQueue,omitempty"`

	// Sequence is what calls take turns in: those that a model makes at once and that share one are made one
	// after another, in the model's order, while others run beside them. Empty means that the tool's calls
	// wait for none.
	Sequence string `json:"sequence,omitempty"`
}

// Call is one request to run a tool.
type Call struct {
	// ID is the tool call's id.
	ID string

	// Arguments is a JSON object as the model wrote it. Empty means {}.
	Arguments json.RawMessage

	// IdempotencyKey is the same for every attempt of this call, and for no
	// other call. A tool passes it on to what it calls in turn.
	IdempotencyKey string

	// Reporter takes what the tool reports while it runs; nil means that nobody listens.
	Reporter Reporter

	// Asks tells that the tool may ask people: a call that fails with a *[Raised] is made again when its question
	// is answered. Answers are those that it has by then, in the order of its questions.
	Asks    bool
	Answers []Answer
}

// Result is what came of a call that came to an end.
type Result struct {
	// Content is what the model sees: text, often JSON. It is valid UTF-8.
	Content string

	// Parts follow the text: more text, or media. Models that cannot take media in a result get the
	// text alone. At most MaxParts and MaxMedia are kept; the model is told of what was left out.
	Parts []llm.Part

	// IsError says that Content tells of a failure.
	IsError bool

	// Cause is the error behind a failure, for operators; the model never sees it. It is
	// a *PanicError if the tool panicked. It may be nil.
	Cause error
}

// Failed returns the result of a tool that could not do what it was asked to.
// The text is for the model: what is wrong and what would be right. It is cut after 4 KiB.
func Failed(text string) Result {
	return Result{Content: bounded(text, maxFailure), IsError: true}
}

// UnavailableError says that a call came to no end because what carries it is down: a server that
// cannot be reached, or is too busy. Another attempt may help; Text is what the model is told if
// there is none, at most 4 KiB of it.
type UnavailableError struct {
	Text       string
	RetryAfter time.Duration // how long to wait before another attempt; 0 = as the caller likes
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

// Error leaves the stack out: it may end up anywhere.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

type idempotencyKey struct{}

// IdempotencyKey returns the key of the call that ctx belongs to, or "" outside
// of a call. It is how a [Func] reads [Call].IdempotencyKey.
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// SpecError says what is wrong with a tool's own description.
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

// complete checks a spec and fills its defaults in.
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
