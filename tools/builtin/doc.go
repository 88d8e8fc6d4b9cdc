// Package builtin contains the tools that every worker has.
//
//	registry, err := tools.NewRegistry(builtin.Tools()...)
//
// The tools calculate and current_time do what models often get wrong. The tools ask_user and
// confirm ask the user, wait and event wait for a time or for another system, and approve records
// approvals. All of them are idempotent, and need no API
// key and no network.
package builtin

import (
	"time"

	"github.com/perdure/perdure/tools"
)

// Tools returns the built-in tools, with the clock of the machine.
func Tools() []tools.Tool {
	return []tools.Tool{Approve(), Calculate(), CurrentTime(time.Now), AskUser(), Confirm(), Wait(time.Now), Event()}
}
