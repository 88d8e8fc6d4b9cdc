package builtin

import (
	"context"

	"github.com/perdure/perdure/tools"
)

// ApproveName is the tool whose calls are the questions of approval steps.
const ApproveName = "approve"

// Approve returns the tool approve, which does nothing: that its call is made says that people have approved
// of what its arguments tell.
func Approve() tools.Tool {
	approved := func(context.Context, map[string]any) (string, error) { return "Approved.", nil }
	return tools.Func(ApproveName, "Asks people to approve of what the arguments say.", approved, tools.Idempotent())
}
