package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
)

// provider is a provider with a limit, as this worker knows it. It is safe for concurrent use.
type provider struct {
	bucket bucket
	key    string
	name   string
	limit  Limit

	// turn has one value while no call of this worker is the next one. The waiting calls of a worker
	// take it in their order, since a channel serves its receivers in turn.
	turn    chan struct{}
	waiting atomic.Int32 // calls that wait for the turn, or have it

	// writer has one value while nobody writes. calls is the number of active calls of this worker: only
	// the writer counts one that begins, and each counts its own end.
	writer chan struct{}
	calls  atomic.Int32

	mu       sync.Mutex // guards the last value of the key
	value    []byte
	revision uint64        // 0 = there is no value
	changed  chan struct{} // closed by the next change
}

// newProvider returns a provider without calls.
func newProvider(b bucket, name string, limit Limit) *provider {
	p := &provider{bucket: b, key: keyLimit + "." + name, name: name, limit: limit, turn: make(chan struct{}, 1), writer: make(chan struct{}, 1), changed: make(chan struct{})}
	p.turn <- struct{}{}
	p.writer <- struct{}{}
	return p
}

// take takes over a value of the key, unless a later one is known.
func (p *provider) take(value []byte, revision uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision <= p.revision {
		return
	}
	p.set(value, revision)
}

// set sets the value of the key. The caller holds mu.
func (p *provider) set(value []byte, revision uint64) {
	p.value, p.revision = value, revision
	close(p.changed)
	p.changed = make(chan struct{})
}

// last returns the last known value, and a channel that the next one closes.
func (p *provider) last() (value []byte, revision uint64, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.revision, p.changed
}

// maxTries bounds the compare-and-swaps of one change. Each conflict means that another worker has made
// a change, so the workers make progress.
const maxTries = 1000

// change changes the value by compare-and-swap. decide changes the occupancy, and reports whether to
// write it; it may be called several times. stored is called after the last time; nil = nothing. Both may
// use calls. The error is a stream.ErrUnavailable, or the cause of ctx.
func (p *provider) change(ctx context.Context, decide func(o *occupancy, now time.Time) bool, stored func()) error {
	select {
	case <-p.writer:
		defer func() { p.writer <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for range maxTries {
		value, revision, _ := p.last()
		var o occupancy
		_ = json.Unmarshal(value, &o) // a value that is invalid or missing is empty
		now := time.Now()
		o.expire(now)
		isChanged := decide(&o, now)
		if isChanged {
			err := p.write(ctx, o, revision)
			switch {
			case stream.IsConflict(err):
				if err := p.read(ctx); err != nil {
					return err
				}
				continue
			case err != nil:
				return asUnavailable(ctx, err)
			}
		}
		if stored != nil {
			stored()
		}
		return nil
	}
	return fmt.Errorf("admission: %w: too many workers change the calls of a provider at once", stream.ErrUnavailable)
}

// write writes an occupancy, if the key has a revision; 0 = no value.
func (p *provider) write(ctx context.Context, o occupancy, revision uint64) error {
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	if revision == 0 {
		revision, err = p.bucket.kv.Create(ctx, p.key, body)
	} else {
		revision, err = p.bucket.kv.Update(ctx, p.key, body, revision)
	}
	if err == nil {
		p.take(body, revision)
	}
	return err
}

// read reads the value of the key.
func (p *provider) read(ctx context.Context) error {
	entry, err := p.bucket.kv.Get(ctx, p.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		p.set(nil, 0)
	case err != nil:
		return asUnavailable(ctx, err)
	default:
		p.set(entry.Value(), entry.Revision())
	}
	return nil
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable, so that activities retry. If ctx
// has ended, the result is its cause.
func asUnavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("admission: %w: %w", stream.ErrUnavailable, err)
}

// noticeAfter is how long a call waits before Wait.Begun is called.
const noticeAfter = 100 * time.Millisecond

// busyPause is the pause that a call asks for that has waited for too long.
const busyPause = time.Second

// begin waits until this worker may make another call. See [Gate.Admit] for the error.
func (p *provider) begin(ctx context.Context, wait Wait) error {
	p.waiting.Add(1)
	isAdmitted := false
	defer func() {
		if p.waiting.Add(-1) == 0 && !isAdmitted {
			p.bucket.writeInBackground(p.leave)
		}
	}()
	w := newAdmissionWait(wait)
	defer w.stop()
	if err := w.await(ctx, p.turn, nil); err != nil {
		return p.busy(err)
	}
	defer func() { p.turn <- struct{}{} }()
	for {
		var delay time.Duration
		_, _, changed := p.last()
		err := p.change(ctx, func(o *occupancy, now time.Time) bool {
			waiting := int(p.waiting.Load())
			if delay = o.delay(p.bucket.worker, p.limit, now); delay > 0 {
				isChanged := o.enqueue(p.bucket.worker, p.activeCalls(), now)
				o.setWaiting(p.bucket.worker, waiting)
				return isChanged
			}
			o.begin(p.bucket.worker, p.activeCalls()+1, p.limit, now)
			o.setWaiting(p.bucket.worker, waiting-1) // without this call
			return true
		}, func() {
			if delay <= 0 {
				p.calls.Add(1)
			}
		})
		if err != nil {
			return err
		}
		if delay <= 0 {
			isAdmitted = true
			return nil
		}
		timer := time.NewTimer(delay)
		err = w.await(ctx, changed, timer.C)
		timer.Stop()
		if err != nil {
			return p.busy(err)
		}
	}
}

// busy returns the error of a call that has waited for too long; it returns other errors unchanged.
func (p *provider) busy(err error) error {
	if !errors.Is(err, errTooLong) {
		return err
	}
	return &llm.Error{
		Code: llm.CodeProviderBusy, RetryAfter: busyPause,
		Reason: fmt.Sprintf("no further call of %s within the limit %s", p.name, Limits{p.name: p.limit}), Hint: "raise PERDURE_MODEL_LIMITS, or start fewer runs",
	}
}

// activeCalls returns the number of active calls of this worker.
func (p *provider) activeCalls() int { return int(p.calls.Load()) }

// hold renews the lease of this worker with its calls.
func (p *provider) hold(o *occupancy, now time.Time) {
	o.hold(p.bucket.worker, p.activeCalls(), now)
	o.setWaiting(p.bucket.worker, int(p.waiting.Load()))
}

// end ends a call. The call has ended also if the write fails, or another write takes all of the time: then
// the next renewal writes it.
func (p *provider) end(ctx context.Context) error {
	p.calls.Add(-1)
	return p.change(ctx, func(o *occupancy, now time.Time) bool {
		p.hold(o, now)
		return true
	}, nil)
}

// leave removes this worker from those that wait, unless a call has begun to wait meanwhile.
func (p *provider) leave(ctx context.Context) error {
	return p.change(ctx, func(o *occupancy, now time.Time) bool {
		if p.waiting.Load() > 0 {
			return false
		}
		o.dequeue(p.bucket.worker)
		p.hold(o, now)
		return true
	}, nil)
}

// renew renews the lease, if the worker has one.
func (p *provider) renew(ctx context.Context) error {
	return p.change(ctx, func(o *occupancy, now time.Time) bool {
		if _, isKnown := o.Workers[p.bucket.worker]; !isKnown && p.activeCalls() == 0 {
			return false
		}
		p.hold(o, now)
		return true
	}, nil)
}

// close removes the worker.
func (p *provider) close(ctx context.Context) error {
	return p.change(ctx, func(o *occupancy, _ time.Time) bool {
		_, isKnown := o.Workers[p.bucket.worker]
		o.dequeue(p.bucket.worker)
		delete(o.Workers, p.bucket.worker)
		return isKnown
	}, nil)
}
