// Package builtin has the tools that every worker offers.
//
//	registry, err := tools.NewRegistry(builtin.Tools()...)
//
// They are calculate and current_time: the two things that models get wrong
// most readily by themselves. Both only read, need no key and no network, and are idempotent.
package builtin

import (
	"time"

	"github.com/perdure/perdure/tools"
)

// Tools returns all of them, on the clock of the machine.
func Tools() []tools.Tool {
	return []tools.Tool{Approve(), Calculate(), CurrentTime(time.Now)}
}
