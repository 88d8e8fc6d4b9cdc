package activities_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// chain is a fixture whose agent has several models. Each fails with its errors, one for each call, and
// then answers with its name.
type chain struct {
	*fixture
	mu     sync.Mutex
	errs   map[string][]error // by the model's name without the provider
	called []string           // models in the order of their calls
	keys   map[string]bool    // idempotency keys
}

// setupChain returns a fixture whose agent has the models of a list, such as "a/x, b/y".
func setupChain(t *testing.T, models string, errs map[string][]error) *chain {
	t.Helper()
	c := &chain{fixture: setup(t, nil), errs: errs, keys: map[string]bool{}}
	c.agent = parseDefinition(t, "name: a\nmodel: ["+models+"]\ninstructions: Be brief.\n")
	c.acts.Models = map[string]llm.Model{"a": llm.ModelFunc(c.stream), "b": llm.ModelFunc(c.stream), "c": llm.ModelFunc(c.stream)}
	return c
}

// stream implements llm.Model.
func (c *chain) stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		c.mu.Lock()
		var err error
		c.called, c.keys[req.IdempotencyKey] = append(c.called, req.Model), true
		if left := c.errs[req.Model]; len(left) > 0 {
			err, c.errs[req.Model] = left[0], left[1:]
		}
		c.mu.Unlock()
		if err == nil {
			_ = yield(llm.TextDelta{Text: req.Model}, nil) && yield(llm.Finish{Reason: llm.FinishStop, Provider: "p", Model: req.Model, Usage: llm.Usage{Input: pointer(10), Output: pointer(2)}}, nil)
			return
		}
		if failure, ok := err.(*llm.Error); ok && failure.Code == llm.CodeTruncated { //nolint:errorlint // the test's own error
			if !yield(llm.TextDelta{Text: "Half "}, nil) {
				return
			}
			c.awaitShown(ctx, 1)
		}
		yield(nil, err)
	}
}

// TestFailedCallIsAttemptedAtNextModel: after each error of a provider the next model follows, errors of
// the content end the run, and a model with an error that is final is not called again.
func TestFailedCallIsAttemptedAtNextModel(t *testing.T) {
	t.Parallel()
	failure := func(codes ...llm.Code) (errs []error) {
		for _, code := range codes {
			errs = append(errs, &llm.Error{Code: code, Status: 400})
		}
		return errs
	}
	forever := failure(llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable, llm.CodeUnavailable)
	for name, c := range map[string]struct {
		models, on string
		errs       map[string][]error
		want       string // models that are called
		code       string // of the run
	}{
		"overload":                {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeUnavailable)}, want: "x y"},
		"rate limit":              {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeRateLimited)}, want: "x y"},
		"no key":                  {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeUnauthorized)}, want: "x y"},
		"unknown model":           {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeNotFound)}, want: "x y"},
		"broken stream":           {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeTruncated)}, want: "x y"},
		"no provider":             {models: "missing/x, b/y", want: "y"},
		"the same provider":       {models: "a/x, a/y", errs: map[string][]error{"x": failure(llm.CodeTimeout)}, want: "x y"},
		"second round":            {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeUnavailable), "y": failure(llm.CodeUnavailable)}, want: "x y x"},
		"final error":             {models: "a/x, b/y, c/z", errs: map[string][]error{"x": failure(llm.CodeUnauthorized), "y": failure(llm.CodeUnavailable), "z": failure(llm.CodeUnavailable)}, want: "x y z y"},
		"final errors":            {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeUnauthorized), "y": failure(llm.CodeNotFound)}, want: "x y", code: "not_found"},
		"only one is left":        {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeUnauthorized), "y": failure(llm.CodeTimeout, llm.CodeTimeout)}, want: "x y y y"},
		"too many failures":       {models: "a/x, b/y", errs: map[string][]error{"x": forever, "y": forever}, want: "x y x y x y x y", code: "unavailable"},
		"refused request":         {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeInvalidRequest)}, want: "x", code: "invalid_request"},
		"conflict":                {models: "a/x, b/y", errs: map[string][]error{"x": failure(llm.CodeConflict)}, want: "x x"},
		"content on demand":       {models: "a/x, b/y", on: "[context_length]", errs: map[string][]error{"x": failure(llm.CodeContextLength)}, want: "x y"},
		"other codes are no more": {models: "a/x, b/y", on: "[context_length]", errs: map[string][]error{"x": failure(llm.CodeUnavailable)}, want: "x x"},
		"one model":               {models: "a/x", errs: map[string][]error{"x": failure(llm.CodeUnavailable)}, want: "x x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupChain(t, c.models, c.errs)
			if c.on != "" {
				f.agent = parseDefinition(t, "name: a\nmodel: ["+c.models+"]\nfallback: {on: "+c.on+"}\n")
			}
			_, result := f.run("hello")
			wantEqual(t, "models that were called", strings.Join(f.called, " "), c.want)
			wantEqual(t, "code", result.Code, c.code)
			if c.code == "" {
				last := f.conversation()[len(f.conversation())-1]
				wantEqual(t, "answer", last.Content.Text(), f.called[len(f.called)-1])
			}
			distinct := map[string]bool{}
			for _, model := range f.called {
				distinct[model] = true
			}
			wantEqual(t, "number of idempotency keys", len(f.keys), len(distinct))
		})
	}
}

// TestFallbackFollowsAtOnce: the next model is attempted without a pause, and the pause before the next
// round is that of the policy, or as long as all models have asked for.
func TestFallbackFollowsAtOnce(t *testing.T) {
	t.Parallel()
	f := setupChain(t, "a/x, b/y", map[string][]error{
		"x": {&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute}, &llm.Error{Code: llm.CodeUnavailable}},
		"y": {&llm.Error{Code: llm.CodeRateLimited, RetryAfter: 40 * time.Second}, &llm.Error{Code: llm.CodeUnavailable}},
	})
	if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("run = %+v, want a success", result)
	}
	var got []string
	for _, failure := range f.reportedFailures() {
		got = append(got, failure.Model+" "+failure.Code+" "+failure.Pause.String())
	}
	want := []string{"a/x rate_limited 10ms", "b/y rate_limited 40s", "a/x unavailable 10ms", "b/y unavailable 2s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if received := f.history.String(); !strings.Contains(received, "a/x; b/y follows") {
		t.Errorf("data of Temporal: got\n%s, want the model that follows", received)
	}
}

// TestFallbackIsCountedByItsModel: usage and cost are those of the model that has answered, and what the
// first model has streamed is retracted, and counted by its own price.
func TestFallbackIsCountedByItsModel(t *testing.T) {
	t.Parallel()
	f := setupChain(t, "a/x, b/y", map[string][]error{"x": {&llm.Error{Code: llm.CodeTruncated}}})
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("currency: EUR\nprices: [{model: a/x, input: 0, output: 1000000}, {model: b/y, input: 1, output: 5}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.acts.Prices, err = budget.Load(file); err != nil {
		t.Fatal(err)
	}
	events, _ := f.run("hello")
	finished := events[len(events)-1].(*agui.RunFinished)
	wantEqual(t, "cost", string(finished.Metadata["perdure.cost"]), `{"amount":2.00002,"currency":"EUR","estimated":2}`)
	wantEqual(t, "answer", f.conversation()[1].Content.Text(), "y")
	if types := typesOf(events); !strings.Contains(types, "STEP_FINISHED") || strings.Count(types, "TEXT_MESSAGE_CONTENT") != 1 {
		t.Errorf("events = %s, want the text of the second model only", types)
	}
}

// TestFallbackNeedsPrices: if costs are limited, all models of the chain need a price before the first
// call, so that an outage does not end the run.
func TestFallbackNeedsPrices(t *testing.T) {
	t.Parallel()
	f := setupChain(t, "a/x, b/y", nil)
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("currency: EUR\nprices: [{model: a/x, input: 1, output: 5}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.acts.Prices, err = budget.Load(file); err != nil {
		t.Fatal(err)
	}
	f.limits.Cost = 1000
	_, result := f.run("hello")
	wantEqual(t, "code", result.Code, "price_unknown")
	wantEqual(t, "models that were called", len(f.called), 0)
}

// TestDeathOfWorkerKeepsTheModel: an attempt whose worker dies has no failure, so that the next one calls
// the same model, after a fallback as well.
func TestDeathOfWorkerKeepsTheModel(t *testing.T) {
	t.Parallel()
	f := setupChain(t, "a/x, b/y", map[string][]error{"x": {&llm.Error{Code: llm.CodeUnavailable}}})
	died := false
	f.acts.Models["b"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		if !died {
			died = true
			f.called = append(f.called, "y dies")
			panic("the worker dies")
		}
		return f.stream(ctx, req)
	})
	f.run("hello")
	wantEqual(t, "models that were called", strings.Join(f.called, ", "), "x, y dies, y")
}
