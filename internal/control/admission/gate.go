package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// Gate admits the calls of one worker. Open makes it, and the caller must call Stop. It is safe for
// concurrent use. A nil Gate admits all calls at once.
type Gate struct {
	bucket    bucket
	providers map[string]*provider // those with a limit
	pauses    *pauses
	breakers  *breakers
	watch     *watch.Watch
	stop      context.CancelFunc
	tasks     sync.WaitGroup // the renewal, and writes after the end of calls
}

// Open opens the gate of a worker, and creates the bucket if it is missing. worker is a name that no
// other process has, also not an earlier one. Open blocks until the present values are read.
func Open(ctx context.Context, l *stream.Log, worker string, limits Limits) (*Gate, error) {
	kv, err := openBucket(ctx, l)
	if err != nil {
		return nil, err
	}
	g := &Gate{providers: map[string]*provider{}, breakers: &breakers{byModel: map[string]*breaker{}, openTime: openTime}}
	g.bucket = bucket{kv: kv, worker: worker, tasks: &g.tasks}
	g.bucket.lifetime, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.pauses = newPauses(g.bucket)
	for name, limit := range limits {
		g.providers[name] = newProvider(g.bucket, name, limit)
	}
	g.watch, err = watch.Begin(ctx, watch.Source{Log: l, Bucket: kv, Keys: ">"}, watch.Receiver{
		Load: func() watch.Loading { return loading{g} },
		Take: func(_ context.Context, change jetstream.KeyValueEntry) { g.take(change) },
	})
	if err != nil {
		g.stop()
		return nil, fmt.Errorf("admission: watch: %w", err)
	}
	if len(limits) > 0 {
		g.tasks.Go(g.renew)
	}
	return g, nil
}

// stopTimeout bounds the last writes of a gate.
const stopTimeout = time.Second

// Stop gives the calls of this worker back, and waits for the goroutines of the gate.
func (g *Gate) Stop() {
	g.stop()
	g.watch.Stop()
	g.tasks.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.bucket.lifetime), stopTimeout)
	defer cancel()
	for _, p := range g.providers {
		_ = p.close(ctx) // the leases end by themselves
	}
}

// loading takes the present values. The values of keys that are gone stay: leases and pauses end by
// themselves.
type loading struct{ gate *Gate }

// Take implements [watch.Loading].
func (l loading) Take(entry jetstream.KeyValueEntry) { l.gate.take(entry) }

// Done implements [watch.Loading].
func (loading) Done(context.Context, uint64) {}

// take applies one change of the bucket.
func (g *Gate) take(entry jetstream.KeyValueEntry) {
	kind, name, _ := strings.Cut(entry.Key(), ".")
	switch {
	case entry.Operation() != jetstream.KeyValuePut:
	case kind == keyPause:
		g.pauses.take(name, entry.Value())
	case kind == keyLimit && g.providers[name] != nil:
		g.providers[name].take(entry.Value(), entry.Revision())
	}
}

// renew renews the leases of this worker until Stop.
func (g *Gate) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.bucket.lifetime.Done():
			return
		case <-tick.C:
			for _, p := range g.providers {
				ctx, cancel := context.WithTimeout(g.bucket.lifetime, renewEvery)
				_ = p.renew(ctx) // the next renewal is before the end of the lease
				cancel()
			}
		}
	}
}

// Admit waits until a call of a model may begin. model is provider/model. The error is an *llm.Error
// with llm.CodeProviderBusy if the call may not begin in time, or with llm.CodeCircuitOpen if earlier
// calls of this worker have failed; a stream.ErrUnavailable; or the cause of ctx. Otherwise the caller must call Call.End after the call.
func (g *Gate) Admit(ctx context.Context, model string, wait Wait) (*Call, error) {
	if g == nil {
		return &Call{}, nil
	}
	if err := g.pauses.await(ctx, model); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(model, "/")
	call := &Call{gate: g, model: model, provider: g.providers[name]}
	if call.provider != nil {
		if err := call.provider.begin(ctx, wait); err != nil {
			return nil, err
		}
		// The pause may have begun while the call waited.
		if err := g.pauses.await(ctx, model); err != nil {
			call.release()
			return nil, err
		}
	}
	var err error
	if call.report, err = g.breakers.allow(model); err != nil {
		call.release()
		return nil, err
	}
	return call, nil
}

// Circuits returns the circuits of this worker that are not closed, sorted by model.
func (g *Gate) Circuits() []Circuit {
	if g == nil {
		return nil
	}
	return g.breakers.circuits()
}

// Call is a call that was admitted. One goroutine uses it.
type Call struct {
	gate     *Gate     // nil = the gate does nothing
	provider *provider // nil = it has no limit
	model    string
	report   func(outcome error) // to the circuit breaker; nil = it was called
}

// Answers tells that the model has begun to answer. Calls after the first have no effect.
func (c *Call) Answers() {
	if c.report != nil {
		c.report(nil)
		c.report = nil
	}
}

// release gives the call back to the limit of its provider.
func (c *Call) release() {
	if c.provider != nil {
		c.gate.bucket.writeInBackground(c.provider.end)
	}
}

// End ends the call with its error, which may be nil. It does not block.
func (c *Call) End(err error) {
	if c.gate == nil {
		return
	}
	c.release()
	if c.report != nil {
		c.report(outcome(err))
		c.report = nil
	}
	failure, ok := errors.AsType[*llm.Error](err)
	if ok && failure.RetryAfter > 0 && (failure.Code == llm.CodeRateLimited || failure.Code == llm.CodeUnavailable) {
		c.gate.pauses.begin(c.model, failure.RetryAfter)
	}
}
