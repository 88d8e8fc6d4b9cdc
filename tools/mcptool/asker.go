package mcptool

import (
	"context"
	"slices"
	"sync"

	"github.com/perdure/perdure/tools"
)

// asker is the active call to a server before [roundTrips], as far as elicitation needs it. At most
// one exists at a time, see [Server.alone].
type asker struct {
	ctx  context.Context         // of the call
	fail context.CancelCauseFunc // ends ctx with the question as its cause

	mu      sync.Mutex     // guards answers
	answers []tools.Answer // of earlier attempts, not used yet
}

// take removes and returns the answer to the question with that digest, or false. A server can
// elicit several times in parallel, so the order is not relevant.
func (a *asker) take(question string) (tools.Answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.answers, func(answer tools.Answer) bool { return answer.Question == question })
	if i < 0 {
		return tools.Answer{}, false
	}
	answer := a.answers[i]
	a.answers = slices.Delete(a.answers, i, i+1)
	return answer, true
}
