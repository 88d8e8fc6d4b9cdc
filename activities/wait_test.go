package activities

import (
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
)

// TestBoundWait: a wait longer than the limit of the agent is refused, and an event without a timeout
// gets the limit. Questions for people have no such limit.
func TestBoundWait(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	wait := &tools.Wait{}
	for name, tt := range map[string]struct {
		question  tools.Question
		isRefused bool
		want      time.Duration
	}{
		"within the limit":      {tools.Question{Wait: wait, ExpiresIn: limit}, false, limit},
		"above the limit":       {tools.Question{Wait: wait, ExpiresIn: limit + 1}, true, limit + 1},
		"until a later time":    {tools.Question{Wait: wait, ExpiresAt: time.Now().Add(2 * limit)}, true, 0},
		"until a time":          {tools.Question{Wait: wait, ExpiresAt: time.Now().Add(limit / 2)}, false, 0},
		"without a timeout":     {tools.Question{Wait: wait}, false, limit},
		"a question for people": {tools.Question{ExpiresIn: 9 * limit}, false, 9 * limit},
	} {
		raised := &tools.Raised{Question: tt.question}
		if refusal := boundWait(raised, limit); (refusal != "") != tt.isRefused || raised.ExpiresIn != tt.want {
			t.Errorf("%s: refusal = %q, expires in %s, want refused: %v, %s", name, refusal, raised.ExpiresIn, tt.isRefused, tt.want)
		}
	}
}
