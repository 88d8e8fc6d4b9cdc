package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
)

// breakers are the circuit breakers of the models that this worker calls. A model has one from a failure
// on until a call succeeds. Other workers have their own: a worker that cannot reach a provider must not
// stop those that can, and a shared state would cost each call a round trip. It is safe for concurrent
// use.
type breakers struct {
	mu      sync.Mutex
	byModel map[string]*breaker // by provider/model; guarded by mu
	// openTime is how long a circuit stays open; then single calls are made.
	openTime time.Duration
}

// breaker is the circuit breaker of one model.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]

	mu    sync.Mutex
	until time.Time // end of the open state; guarded by mu
	since time.Time // when the circuit opened that has not closed since; guarded by mu
}

const (
	// tripAfter is how many calls in a row have to fail before the circuit opens: more than the failures
	// of one call, so that it takes several runs.
	tripAfter = 10
	// openTime is how long it stays open.
	openTime = 15 * time.Second
	// probeTime is the pause that a call asks for while another one finds out whether the model answers.
	probeTime = 2 * time.Second
)

// errUnknown is the outcome of a call that says nothing of its model, such as a cancelled one.
var errUnknown = errors.New("admission: the call says nothing of its model")

// find returns the breaker of a model; nil = it has none.
func (b *breakers) find(model string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byModel[model]
}

// make returns the breaker of a model, which it makes if there is none.
func (b *breakers) make(model string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.byModel[model]; known != nil {
		return known
	}
	made := &breaker{}
	made.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: b.openTime,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errUnknown) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			provider, name, _ := strings.Cut(model, "/")
			switch {
			case to == gobreaker.StateOpen:
				made.open(b.openTime, from == gobreaker.StateClosed)
				if from == gobreaker.StateClosed {
					telemetry.CountOpenCircuits(context.Background(), provider, name, 1)
				}
			case to == gobreaker.StateClosed:
				telemetry.CountOpenCircuits(context.Background(), provider, name, -1)
			}
		},
	})
	b.byModel[model] = made
	return made
}

// drop removes the breaker of a model that answers.
func (b *breakers) drop(model string, answering *breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byModel[model] == answering && answering.State() == gobreaker.StateClosed {
		delete(b.byModel, model)
	}
}

// open sets the end of the open state. isFirst means that the circuit was closed before.
func (b *breaker) open(d time.Duration, isFirst bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.until = now.Add(d)
	if isFirst {
		b.since = now
	}
}

// Circuit is the circuit of a model that is not closed.
type Circuit struct {
	Model string // provider/model
	// State is "open", or "half-open": the worker makes a single call, whose outcome decides.
	State string
	Since time.Time // when it opened
}

// circuits returns the circuits that are not closed, sorted by model.
func (b *breakers) circuits() []Circuit {
	b.mu.Lock()
	known := maps.Clone(b.byModel)
	b.mu.Unlock()
	var circuits []Circuit
	for model, of := range known {
		// The state comes first: reading it ends an open state whose time is over.
		if state := of.State(); state != gobreaker.StateClosed {
			of.mu.Lock()
			circuits = append(circuits, Circuit{model, state.String(), of.since})
			of.mu.Unlock()
		}
	}
	slices.SortFunc(circuits, func(a, b Circuit) int { return strings.Compare(a.Model, b.Model) })
	return circuits
}

// left returns how long the circuit stays open, or the time for the call that probes the model.
func (b *breaker) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(time.Until(b.until), probeTime)
}

// allow begins a call of a model. report takes its outcome: nil = the model answers. The error is an
// *llm.Error with llm.CodeCircuitOpen if the circuit is open, or half-open with a call that probes it.
func (b *breakers) allow(model string) (report func(error), err error) {
	known := b.find(model)
	if known == nil {
		return func(outcome error) { b.fail(model, outcome) }, nil
	}
	done, err := known.Allow()
	if err != nil {
		left := known.left()
		return nil, &llm.Error{
			Code: llm.CodeCircuitOpen, RetryAfter: left + rand.N(time.Second), //nolint:gosec // no secret
			Reason: fmt.Sprintf("at least %d calls of the model in a row have failed in this worker; the next one is made in %s", tripAfter, left.Round(time.Second)),
		}
	}
	return func(outcome error) {
		done(outcome)
		if outcome == nil {
			b.drop(model, known)
		}
	}, nil
}

// fail counts the failure of a call that had no breaker.
func (b *breakers) fail(model string, outcome error) {
	if outcome == nil || errors.Is(outcome, errUnknown) {
		return
	}
	if done, err := b.make(model).Allow(); err == nil {
		done(outcome)
	}
}

// outcome returns what the error of a call says of its model: nil if the model answers, whatever that
// is, and errUnknown if the call has ended for another reason.
func outcome(err error) error {
	failure, ok := errors.AsType[*llm.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return errUnknown
	}
	switch failure.Code {
	case llm.CodeUnavailable, llm.CodeTimeout, llm.CodeTruncated, llm.CodeMalformedResponse:
		return failure
	}
	return nil
}
