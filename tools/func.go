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

// Option is an option of [Func].
type Option func(*options)

// options are the options of a Func.
type options struct {
	spec   Spec
	refine []func(*jsonschema.Schema)
}

// Timeout bounds one call; the default is [DefaultTimeout].
func Timeout(d time.Duration) Option { return func(o *options) { o.spec.Timeout = d } }

// MaxResult bounds the content of a result in bytes; the default is [DefaultMaxResult]. A longer
// result is cut, with a note.
func MaxResult(bytes int) Option { return func(o *options) { o.spec.MaxResult = bytes } }

// Idempotent tells that calling the tool twice has the same effect as calling it once.
func Idempotent() Option { return func(o *options) { o.spec.Idempotent = true } }

// Attempts sets how often a call without an outcome may be made; see [Spec].
func Attempts(n int) Option { return func(o *options) { o.spec.Attempts = n } }

// TaskQueue sets the Temporal task queue whose workers make the calls; see [Spec].
func TaskQueue(name string) Option { return func(o *options) { o.spec.TaskQueue = name } }

// Sequential makes the calls of one turn run one after the other, in the model's order. Calls of
// other tools run concurrently with them.
func Sequential() Option { return func(o *options) { o.spec.Sequence = o.spec.Name } }

// Refine changes the schema that is derived from the type of the arguments, for what a Go type
// cannot express: enumerations, ranges, patterns.
//
// encoding/json matches keys to fields without regard to case. Keep additionalProperties forbidden;
// otherwise unchecked keys reach the fields.
func Refine(change func(schema *jsonschema.Schema)) Option {
	return func(o *options) { o.refine = append(o.refine, change) }
}

// Func makes a tool from a Go function.
//
// The schema of the arguments derives from In, a struct or a map with string keys: fields have
// their JSON names, a jsonschema tag is the description of a field, and fields without omitempty or
// omitzero are required. fn is called only with arguments that fit the schema, possibly many times
// concurrently.
//
// An Out that is a string is the text of the result. A [Result] is returned as it is, and may have
// media. Other types are encoded as JSON. The text of an error is for the model, up to 4 KiB: it
// should say what to do differently, and contain no secret. An error after ctx has ended counts as
// the end of ctx, and an [*UnavailableError] as a call without an outcome. fn may use
// [IdempotencyKey], [Report] and [Ask] with its ctx.
//
// [NewRegistry] and every Call report a mistake in the definition, such as an invalid name or a
// type without a schema.
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

// brokenTool passes a mistake from Func, which returns no error, to NewRegistry.
type brokenTool struct {
	spec Spec
	err  error
}

func (t *brokenTool) Spec() Spec { return t.spec }

func (t *brokenTool) Call(context.Context, Call) (Result, error) { return Result{}, t.err }
