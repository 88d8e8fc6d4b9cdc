package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// pauses are the times until which providers want no calls of models: their Retry-After. It is safe for
// concurrent use.
type pauses struct {
	bucket bucket
	mu     sync.Mutex
	until  map[string]time.Time // by provider.model, as in keys; guarded by mu
}

// newPauses returns no pauses.
func newPauses(b bucket) *pauses { return &pauses{bucket: b, until: map[string]time.Time{}} }

// maxPause bounds a pause that a provider asks for.
const maxPause = 10 * time.Minute

// briefPause is how long a call waits for the end of a pause. The clocks of workers differ a little, and
// the attempt that Temporal makes at the end of a pause must not fail.
const briefPause = time.Second

// pause is the value of a key of a pause.
type pause struct {
	Model string `json:"model"` // provider/model: its key may have a digest
	Until int64  `json:"until"` // in milliseconds since 1970
}

// modelKey returns the key of a model after its kind.
func modelKey(model string) string {
	provider, name, _ := strings.Cut(model, "/")
	return stream.KeyToken(provider) + "." + stream.KeyToken(name)
}

// take takes over a value of the bucket. An invalid one counts as none.
func (p *pauses) take(key string, value []byte) {
	var taken pause
	if json.Unmarshal(value, &taken) == nil {
		p.extend(key, time.UnixMilli(taken.Until))
	}
}

// extend sets the end of a pause, and reports whether it is later than before.
func (p *pauses) extend(key string, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !until.After(p.until[key]) {
		return false
	}
	p.until[key] = until
	return true
}

// left returns how long the pause of a model lasts; 0 = there is none.
func (p *pauses) left(model string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.until) == 0 {
		return 0
	}
	key := modelKey(model)
	left := min(time.Until(p.until[key]), maxPause)
	if left <= 0 {
		delete(p.until, key)
		return 0
	}
	return left
}

// await waits for the end of a brief pause. It fails with an *llm.Error during a longer one, or with the
// cause of ctx.
func (p *pauses) await(ctx context.Context, model string) error {
	left := p.left(model)
	if left == 0 {
		return nil
	}
	if left > briefPause {
		// The calls of all runs must not begin in the same moment.
		return &llm.Error{
			Code: llm.CodeProviderBusy, RetryAfter: left + rand.N(briefPause), //nolint:gosec // no secret
			Reason: fmt.Sprintf("the provider wants no calls of the model for %s (Retry-After)", left.Round(time.Second)),
		}
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin tells all workers that a provider wants no calls of a model for a while.
func (p *pauses) begin(model string, d time.Duration) {
	key, until := modelKey(model), time.Now().Add(min(d, maxPause))
	if !p.extend(key, until) {
		return
	}
	p.bucket.writeInBackground(func(ctx context.Context) error {
		value, err := json.Marshal(pause{model, until.UnixMilli()})
		if err == nil {
			_, err = p.bucket.kv.Put(ctx, keyPause+"."+key, value)
		}
		return err
	})
}
