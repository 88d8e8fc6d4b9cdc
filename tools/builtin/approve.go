package builtin

import (
	"context"

	"github.com/perdure/perdure/tools"
)

// Approve returns the tool approve. Approvals of pipeline steps and of soft limits are calls of
// this tool: the call runs after approvers have approved its arguments. The tool itself does
// nothing.
func Approve() tools.Tool {
	approved := func(context.Context, map[string]any) (string, error) { return "Approved.", nil }
	return tools.Func("approve", "Asks people for an approval.", approved, tools.Idempotent())
}
