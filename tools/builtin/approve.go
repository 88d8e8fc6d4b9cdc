package builtin

import (
	"context"

	"github.com/perdure/perdure/tools"
)

// Approve returns the tool approve, whose calls are the approvals of steps and soft limits. The
// tool does nothing: a call of it is made when people have approved its arguments.
func Approve() tools.Tool {
	approved := func(context.Context, map[string]any) (string, error) { return "Approved.", nil }
	return tools.Func("approve", "Asks people to approve of what the arguments say.", approved, tools.Idempotent())
}
