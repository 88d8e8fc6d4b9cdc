package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/perdure/perdure/llm"
)

// guarded is a tool that follows the rules of the package, see the package documentation. It is
// immutable and safe for concurrent use.
type guarded struct {
	inner     Tool    // the tool as its author wrote it
	spec      Spec    // with defaults
	arguments *Schema // compiled from spec.Parameters
}

// guard wraps a tool. It returns an already guarded tool unchanged. The error is a *SpecError.
func guard(tool Tool) (*guarded, error) {
	switch tool := tool.(type) {
	case nil:
		return nil, &SpecError{Reason: "the tool is nil"}
	case *guarded:
		return tool, nil
	case *brokenTool:
		return nil, tool.err
	}
	spec, err := tool.Spec().complete()
	if err != nil {
		return nil, err
	}
	schema, err := CompileSchema(spec.Parameters)
	if err != nil {
		return nil, &SpecError{Tool: spec.Name, Reason: "the parameters are not a valid schema", Err: err}
	}
	return &guarded{inner: tool, spec: spec, arguments: schema}, nil
}

// Spec implements [Tool].
func (g *guarded) Spec() Spec { return g.spec }

// Call implements [Tool]: it validates the arguments, runs the tool with its timeout, and limits
// the result. It does not return before the tool does, even if the tool ignores the end of ctx.
func (g *guarded) Call(ctx context.Context, call Call) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, g.interrupted(ctx)
	}
	if len(bytes.TrimSpace(call.Arguments)) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	if err := g.arguments.Validate(call.Arguments); err != nil {
		return failure(err), nil
	}
	inside := context.WithValue(ctx, idempotencyKey{}, call.IdempotencyKey)
	if call.Run.Tenant != "" {
		inside = context.WithValue(inside, runKey{}, call.Run)
	}
	if call.Reporter != nil {
		inside = context.WithValue(inside, reporterKey{}, call.Reporter)
	}
	if call.Asks {
		inside = context.WithValue(inside, askingKey{}, &asking{answers: call.Answers})
	}
	timed, cancel := context.WithTimeout(inside, g.spec.Timeout)
	defer cancel()
	result, err := g.run(timed, call)
	if err != nil {
		return g.explain(ctx, timed, err)
	}
	return g.bound(result), nil
}

// bound limits the size of a result.
func (g *guarded) bound(result Result) Result {
	var note string
	result.Parts, note = boundedParts(result.Parts, g.spec.MaxResult)
	result.Content = bounded(result.Content, g.spec.MaxResult)
	if note != "" {
		result.Parts = append(result.Parts, llm.Text{Text: note})
	}
	return result
}

// run calls the tool. A panic becomes a failure with a *PanicError as Cause.
func (g *guarded) run(ctx context.Context, call Call) (result Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			result = Failed(g.spec.Name + " failed: internal error")
			result.Cause = &PanicError{Value: value, Stack: debug.Stack()}
			err = nil
		}
	}()
	return g.inner.Call(ctx, call)
}

// explain classifies the error of a call. timed is ctx with the tool's timeout. The end of ctx, an
// error before the timeout, and a *Raised remain errors. The tool's timeout is a failure for the
// model.
func (g *guarded) explain(ctx, timed context.Context, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, g.interrupted(ctx)
	}
	if _, isQuestion := errors.AsType[*Raised](err); isQuestion || timed.Err() == nil {
		return Result{}, fmt.Errorf("tool %s: %w", g.spec.Name, err)
	}
	text := fmt.Sprintf("%s did not finish within %s", g.spec.Name, g.spec.Timeout)
	if !g.spec.Idempotent {
		// The request can have reached its target before the timeout.
		text += "; the call may have taken effect"
	}
	result := Failed(text)
	result.Cause = err
	return result, nil
}

// interrupted returns the error of a call whose ctx has ended, including the cause of ctx.
func (g *guarded) interrupted(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err { //nolint:errorlint // the very same error, not one that wraps it
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("tool %s was interrupted: %w", g.spec.Name, err)
}

// failure is [Failed] for an error whose text the model may receive.
func failure(err error) Result {
	result := Failed(err.Error())
	result.Cause = err
	return result
}
