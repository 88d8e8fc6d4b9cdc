package builtin

import (
	"context"

	"github.com/perdure/perdure/tools"
)

// Approve returns the tool approve, whose calls are the questions of steps that ask people. It does nothing:
// that the call is made says that they have approved of what its arguments tell.
func Approve() tools.Tool {
	approved := func(context.Context, map[string]any) (string, error) { return "Approved.", nil }
	return tools.Func("approve", "Asks people to approve of what the arguments say.", approved, tools.Idempotent())
}
