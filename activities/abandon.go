package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/tools"
)

// grace is how long a tool may run after its context, or its timeout, has ended.
const grace = 500 * time.Millisecond

var errAbandoned = errors.New("activities: the tool does not end")

// callOrAbandon calls a tool. It does not wait for a tool that ignores the end of its context: the
// run must not hang.
func callOrAbandon(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error) {
	type answer struct {
		result tools.Result
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := tool.Call(ctx, call)
		answered <- answer{result, err}
	}()
	overdue := time.NewTimer(tool.Spec().Timeout + grace)
	defer overdue.Stop()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-overdue.C:
		return tools.Failed(callOverdue), nil
	case <-ctx.Done():
	}
	overdue.Reset(grace)
	select {
	case a := <-answered:
		return a.result, a.err
	case <-overdue.C:
		return tools.Result{}, fmt.Errorf("%w: %w", errAbandoned, context.Cause(ctx))
	}
}
