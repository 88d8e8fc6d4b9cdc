package mcptool

import (
	"context"
	"slices"
	"sync"

	"github.com/perdure/perdure/tools"
)

// asker is the call in which an older server may ask.
type asker struct {
	ctx  context.Context
	fail context.CancelCauseFunc

	mu      sync.Mutex
	answers []tools.Answer // not yet used
}

// take returns the answer to a question. A server may ask several at once, in any order.
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
