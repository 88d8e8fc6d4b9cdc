package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// An agent may have several models (agents.Fallback): after a failed attempt, the next attempt calls
// the next model. Nothing stores which one that is. Each attempt derives it from the failures that the
// log has of earlier attempts at its step, so the death of a worker does not change it.

// modelChain is the models of an agent, with what the failed attempts at a step tell of them.
type modelChain struct {
	models   []string // provider/model; empty = the agent has no model
	fallback agents.Fallback
	next     int // index of the model that the next attempt calls
	rounds   int // how often the chain has begun again
	// unusable are models that have failed with an error that is never attempted again. retryAfter is
	// the pause that the last failure of each model asked for.
	unusable   []bool
	retryAfter []time.Duration
}

// modelChain returns the models of an agent, and which of them this attempt calls.
func (a *Activities) modelChain(ctx context.Context, in runs.ModelCall, d *agents.Definition, attempt *stream.Attempt) (modelChain, error) {
	models := d.Models()
	chain := modelChain{models: models, fallback: d.Fallback, unusable: make([]bool, len(models)), retryAfter: make([]time.Duration, len(models))}
	if len(models) < 2 || !attempt.FollowsUnfinished() {
		return chain, nil
	}
	attempts, err := a.Log.AttemptOutputs(ctx, agentPlace(in.Step, in.ID))
	if err != nil {
		return chain, err
	}
	for _, earlier := range attempts {
		if earlier.Step == in.ID && earlier.Failure != nil {
			chain.add(*earlier.Failure)
		}
	}
	return chain, nil
}

// model returns the model that the next attempt calls; "" = the agent has none.
func (c *modelChain) model() string {
	if len(c.models) == 0 {
		return ""
	}
	return c.models[c.next]
}

// add takes in the failure of the next attempt, and reports in hasNext whether another model follows, or the
// same one because no other one is usable. Failures of another model, such as that of summaries, change
// nothing.
func (c *modelChain) add(f stream.Failure) (hasNext bool) {
	if len(c.models) < 2 || f.Model != c.model() {
		return false
	}
	c.retryAfter[c.next] = f.RetryAfter
	if !c.fallback.FallsBackOn(f.Code) {
		return false
	}
	c.unusable[c.next] = f.Unusable
	for i := range c.models {
		following := (c.next + 1 + i) % len(c.models)
		if c.unusable[following] {
			continue
		}
		if following <= c.next {
			c.rounds++
		}
		c.next = following
		return true
	}
	return false
}

// How long a call waits for its admission: with another model that may follow, and without.
const (
	maxFallbackWait  = 3 * time.Second
	maxAdmissionWait = 30 * time.Second
)

// maxAdmissionWait returns how long a call of the next model waits for its admission.
func (c *modelChain) maxAdmissionWait() time.Duration {
	usable := 0
	for _, isUnusable := range c.unusable {
		if !isUnusable {
			usable++
		}
	}
	if usable > 1 && c.fallback.FallsBackOn(string(llm.CodeProviderBusy)) {
		return maxFallbackWait
	}
	return maxAdmissionWait
}

// fallbackPause is the pause before an attempt at the next model.
const fallbackPause = 10 * time.Millisecond

// pause returns the pause between a failed attempt and the next one: fallbackPause within a round. Before each
// further round it is 1, 2, 4, 8, 16, then 30 seconds, or longer if each usable model has asked for more: the
// shortest of their pauses, of at most maxRetryAfter.
func (c *modelChain) pause(roundsBefore int) time.Duration {
	if c.rounds == roundsBefore {
		return fallbackPause
	}
	longest := 30 * time.Second
	backoff := time.Second << min(c.rounds-1, 5)
	asked := time.Duration(-1)
	for i, wait := range c.retryAfter {
		if !c.unusable[i] && (asked < 0 || wait < asked) {
			asked = wait
		}
	}
	return max(min(backoff, longest), min(asked, maxRetryAfter))
}

// withFallback decides which model the attempt after a failed one calls, and adds it to err. Errors
// that are not those of a model of the chain are returned unchanged.
func (c *modelChain) withFallback(err error) error {
	modelErr, ok := errors.AsType[*modelError](err)
	failure, isModel := errors.AsType[*llm.Error](err)
	if !ok || !isModel {
		return err
	}
	after := *c
	after.unusable, after.retryAfter = slices.Clone(c.unusable), slices.Clone(c.retryAfter)
	if after.add(failedModel(modelErr, failure)) {
		modelErr.next, modelErr.pause = after.model(), after.pause(c.rounds)
	}
	return err
}

// failedModel returns what a failed call tells of its model.
func failedModel(modelErr *modelError, failure *llm.Error) stream.Failure {
	return stream.Failure{Code: string(failure.Code), Model: modelErr.model, Unusable: !failure.Retryable(), RetryAfter: failure.RetryAfter}
}
