// Package builtin has the tools that every worker offers.
//
//	registry, err := tools.NewRegistry(builtin.Tools()...)
//
// They are calculate and current_time, the two things that models get wrong most readily by themselves, and
// ask_user and confirm, by which a model asks people. They need no key and no network, and are idempotent.
package builtin

import (
	"time"

	"github.com/perdure/perdure/tools"
)

// Tools returns all of them, on the clock of the machine.
func Tools() []tools.Tool {
	return []tools.Tool{Approve(), Calculate(), CurrentTime(time.Now), AskUser(), Confirm()}
}
