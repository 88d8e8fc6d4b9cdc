// Package builtin has the tools of every worker.
//
//	registry, err := tools.NewRegistry(builtin.Tools()...)
//
// calculate and current_time do what models often get wrong; ask_user and confirm ask people. They
// need no key and no network, and are idempotent.
package builtin

import (
	"time"

	"github.com/perdure/perdure/tools"
)

// Tools returns all of them, on the clock of the machine.
func Tools() []tools.Tool {
	return []tools.Tool{Approve(), Calculate(), CurrentTime(time.Now), AskUser(), Confirm()}
}
