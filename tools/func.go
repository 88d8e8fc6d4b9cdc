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

// Option configures a tool made by [Func].
type Option func(*options)

// options collects the options of one [Func] call.
type options struct {
	spec   Spec
	refine []func(*jsonschema.Schema) // changes of the derived schema, in order
}

// Timeout limits the duration of one call; the default is [DefaultTimeout].
func Timeout(d time.Duration) Option { return func(o *options) { o.spec.Timeout = d } }

// MaxResult limits the content of a result, in bytes; the default is [DefaultMaxResult]. A longer
// result is truncated with a note.
func MaxResult(bytes int) Option { return func(o *options) { o.spec.MaxResult = bytes } }

// Idempotent declares that calling the tool twice has the same effect as calling it once.
func Idempotent() Option { return func(o *options) { o.spec.Idempotent = true } }

// Attempts sets how often a call without an outcome may be attempted, see [Spec.Attempts].
func Attempts(n int) Option { return func(o *options) { o.spec.Attempts = n } }

// TaskQueue sets the Temporal task queue whose workers run the tool, see [Spec.TaskQueue].
func TaskQueue(name string) Option { return func(o *options) { o.spec.TaskQueue = name } }

// Sequential makes the calls of one turn run one after the other, in the model's order. Calls of
// other tools still run concurrently with them.
func Sequential() Option { return func(o *options) { o.spec.Sequence = o.spec.Name } }

// Refine changes the schema that is derived from the type of the arguments, to express what a Go
// type cannot: enumerations, ranges, patterns.
//
// Keep additionalProperties forbidden. encoding/json ignores the case of member names, so a
// misspelled and therefore unvalidated member could set a field.
func Refine(change func(schema *jsonschema.Schema)) Option {
	return func(o *options) { o.refine = append(o.refine, change) }
}

// Func makes a tool from a Go function.
//
// The schema of the arguments is derived from In, a struct or a map with string keys. Fields have
// their JSON names. A jsonschema tag is the description of a field. Fields without omitempty or
// omitzero are required. fn receives only arguments that match the schema, and must be safe for
// concurrent use.
//
// A string Out is the text of the result. A [Result] is returned unchanged, and can contain media.
// Other types are encoded as JSON. An error of fn is a failure: the model receives up to 4 KiB of
// its text, which should say what to do differently, and must contain no secret. Exceptions are an
// error after the end of ctx, and an [*UnavailableError]: they are calls without an outcome. fn may
// use [IdempotencyKey], [Report] and [Ask] with its ctx.
//
// Func itself returns no error. [NewRegistry] and every Call report a mistake in the definition,
// such as an invalid name or an In without a schema.
func Func[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) Tool {
	o := options{spec: Spec{Name: name, Description: description}}
	for _, option := range opts {
		option(&o)
	}
	parameters, err := parametersOf[In](o.refine)
	if err != nil {
		return &brokenTool{spec: o.spec, err: &SpecError{Tool: name, Reason: "the type of the arguments", Err: err}}
	}
	o.spec.Parameters = parameters
	tool, err := guard(&function[In, Out]{spec: o.spec, fn: fn})
	if err != nil {
		return &brokenTool{spec: o.spec, err: err}
	}
	return tool
}

// parametersOf derives the schema of the arguments and applies the changes of [Refine].
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

// function is the tool of a Go function, without the guard.
type function[In, Out any] struct {
	spec Spec
	fn   func(context.Context, In) (Out, error)
}

// Spec implements [Tool].
func (f *function[In, Out]) Spec() Spec { return f.spec }

// Call implements [Tool].
func (f *function[In, Out]) Call(ctx context.Context, call Call) (Result, error) {
	var in In
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return failure(typeProblem(err)), nil // matches the schema, but not the Go type
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

// resultOf converts the return value of a function to a result. name is the name of the tool.
func resultOf(name string, out any) Result {
	switch out := out.(type) {
	case string:
		return Result{Content: out}
	case Result:
		return out
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // models read <, not \u003c
	if err := encoder.Encode(out); err != nil {
		// The tool has run. The text says so, to keep the model from repeating the call.
		result := Failed(name + " has run, but its result is not valid")
		result.Cause = err
		return result
	}
	return Result{Content: string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))}
}

// brokenTool carries an error of [Func] to [NewRegistry], since Func returns no error.
type brokenTool struct {
	spec Spec
	err  error
}

// Spec implements [Tool].
func (t *brokenTool) Spec() Spec { return t.spec }

// Call implements [Tool]. It returns the error of the definition.
func (t *brokenTool) Call(context.Context, Call) (Result, error) { return Result{}, t.err }
