package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/tools"
)

// abandonGrace is how long a tool may run after its context, or its own timeout, has ended.
const abandonGrace = 500 * time.Millisecond

// errAbandoned is the error of a call whose tool ignores the end of its context.
var errAbandoned = errors.New("activities: the tool ignores the end of its context")

// callOrAbandon calls a tool and returns what the tool returns. It gives up waiting for a tool that
// ignores the end of its context, because the run must not hang: the error is then errAbandoned
// with the cause of ctx. For a tool that ignores its own timeout it returns a failed result. An
// abandoned tool keeps its goroutine until it returns; its result is dropped.
func callOrAbandon(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	type answer struct {
		result tools.Result
		err    error
	}
	// With the buffer, the goroutine of an abandoned tool ends without a reader.
	answers := make(chan answer, 1)
	go func() {
		result, err := tool.Call(ctx, call)
		answers <- answer{result, err}
	}()
	// Package tools ends the context of the call at the timeout. This timer is for tools that
	// ignore it.
	overdue := time.NewTimer(tool.Spec().Timeout + abandonGrace)
	defer overdue.Stop()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-overdue.C:
		return tools.Failed(callOverdue), nil
	case <-ctx.Done():
	}
	overdue.Reset(abandonGrace)
	select {
	case a := <-answers:
		return a.result, a.err
	case <-overdue.C:
		return tools.Result{}, fmt.Errorf("%w: %w", errAbandoned, context.Cause(ctx))
	}
}
