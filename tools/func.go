package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Option changes what [Func] makes.
type Option func(*options)

type options struct {
	spec   Spec
	refine []func(*jsonschema.Schema)
}

// Timeout bounds one call; without it, [DefaultTimeout] does.
func Timeout(d time.Duration) Option { return func(o *options) { o.spec.Timeout = d } }

// MaxResult bounds the content of a result in bytes; without it,
// [DefaultMaxResult] does. What is longer is cut and says so.
func MaxResult(bytes int) Option { return func(o *options) { o.spec.MaxResult = bytes } }

// Idempotent says that calling twice does no more than calling once.
func Idempotent() Option { return func(o *options) { o.spec.Idempotent = true } }

// Attempts returns how often one call may be made if it comes to no end; see [Spec].
func Attempts(n int) Option { return func(o *options) { o.spec.Attempts = n } }

// TaskQueue leaves calls to the workers of a Temporal task queue; see [Spec].
func TaskQueue(name string) Option { return func(o *options) { o.spec.TaskQueue = name } }

// Sequential makes the calls of one turn one after another, in the model's order; calls of other tools run
// beside them.
func Sequential() Option { return func(o *options) { o.spec.Sequence = o.spec.Name } }

// Refine changes the schema made from the type of the arguments, to say what a
// Go type cannot: enumerations, ranges, patterns.
//
// encoding/json matches keys to fields without regard to case. Leave
// additionalProperties forbidden, or keys that the schema did not check reach the fields.
func Refine(change func(schema *jsonschema.Schema)) Option {
	return func(o *options) { o.refine = append(o.refine, change) }
}

// Func makes a tool from a Go function.
//
// The schema of the arguments is made from In, a struct or a map with string
// keys: fields go by their json names, a jsonschema tag is a field's description, and those without
// omitempty or omitzero are required. fn is called only with arguments that fit
// it, possibly many times at once.
//
// An Out that is a string is the result as it is, and so is a [Result], which may
// have media; anything else is written as JSON. The text of an error is shown to the model, up to 4 KiB of it: it should
// say what to do differently, and no secret. An error after ctx has ended counts
// as its end, and an [*UnavailableError] as a call that came to none. fn can read the call's [IdempotencyKey] from ctx, and [Report] and [Ask] while
// it runs.
//
// A mistake in the making, such as a bad name or a type that has no schema, is
// reported by [NewRegistry] and by every Call.
func Func[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) Tool {
	o := options{spec: Spec{Name: name, Description: description}}
	for _, option := range opts {
		option(&o)
	}
	parameters, err := parametersOf[In](o.refine)
	if err != nil {
		return &brokenTool{spec: o.spec, err: &SpecError{Tool: name, Reason: "the type of its arguments", Err: err}}
	}
	o.spec.Parameters = parameters
	tool, err := guard(&function[In, Out]{spec: o.spec, fn: fn})
	if err != nil {
		return &brokenTool{spec: o.spec, err: err}
	}
	return tool
}

func parametersOf[In any](refine []func(*jsonschema.Schema)) (json.RawMessage, error) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("%T must be a struct or a map with string keys", *new(In))
	}
	for _, change := range refine {
		change(schema)
	}
	return json.Marshal(schema)
}

type function[In, Out any] struct {
	spec Spec
	fn   func(context.Context, In) (Out, error)
}

func (f *function[In, Out]) Spec() Spec { return f.spec }

func (f *function[In, Out]) Call(ctx context.Context, call Call) (Result, error) {
	var in In
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return failure(typeProblem(err)), nil
	}
	out, err := f.fn(ctx, in)
	switch {
	case err != nil && (ctx.Err() != nil || errors.As(err, new(*UnavailableError)) || errors.As(err, new(*Raised))):
		return Result{}, err
	case err != nil:
		return failure(err), nil
	}
	return resultOf(f.spec.Name, out), nil
}

func resultOf(name string, out any) Result {
	switch out := out.(type) {
	case string:
		return Result{Content: out}
	case Result:
		return out
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // a model reads <, not \u003c
	if err := encoder.Encode(out); err != nil {
		result := Failed(name + " has run, but its result cannot be shown")
		result.Cause = err
		return result
	}
	return Result{Content: string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))}
}

// brokenTool carries a mistake from Func, which has no error to return, to NewRegistry.
type brokenTool struct {
	spec Spec
	err  error
}

func (t *brokenTool) Spec() Spec { return t.spec }

func (t *brokenTool) Call(context.Context, Call) (Result, error) { return Result{}, t.err }
