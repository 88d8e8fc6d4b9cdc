package schedules

import (
	"bytes"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
)

// Refused returns the JSON pointer to what a policy refuses in the input of a schedule's run; "" =
// nothing. The messages of a schedule are new, and of no assistant and no tool.
func Refused(p agents.InputPolicy, in *agui.RunAgentInput) string {
	for i, m := range in.Messages {
		if (m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper) && !p.AcceptsInstructions() {
			return fmt.Sprintf("/messages/%d", i)
		}
	}
	if state := bytes.TrimSpace(in.State); len(state) > 0 && string(state) != "{}" && !p.AcceptsState() {
		return "/state"
	}
	return ""
}
