package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Every model call is counted once, by what the log has of it. An attempt notes its call in the log
// when it has a connection to the provider, before it sends the request. If the attempt finishes,
// its last record has the usage that the provider reported. If it does not, whatever takes its lane
// over counts the call by the note: the next attempt of the step, the advance after a step that
// failed, the end of the subagent, or the end of the run. All of them compute the same from the
// same records, so a retry changes nothing.

// callNote is what the log knows of a model call that has not finished.
type callNote struct {
	// Model is the model as the agent names it, with its provider.
	Model string `json:"model"`
	// Usage is what the provider has reported so far, with an estimate of the input if it has not
	// reported that.
	Usage runs.Usage `json:"usage"`
	// Free tells that the provider refused the request, or never got it.
	Free bool `json:"free,omitempty"`
	// Complete tells that Usage is the provider's report of the whole answer, which the log does
	// not have.
	Complete bool `json:"complete,omitempty"`
	// Metered tells that the attempt has recorded its metrics.
	Metered bool `json:"metered,omitempty"`
}

// modelCall is one request to a model. One goroutine uses it.
type modelCall struct {
	activities *Activities
	attempt    *stream.Attempt
	chat       *telemetry.Chat
	note       callNote
	finish     *llm.Finish // nil = it has not come
	said       strings.Builder
	received   bool // the provider has sent something

	noted        atomic.Bool // the log may have the note
	dialed, sent atomic.Bool // of an HTTP request; other models set neither
}

// newModelCall prepares a call of the model that an agent names, with the attempt that makes it.
func (a *Activities) newModelCall(attempt *stream.Attempt, named string, chat *telemetry.Chat) *modelCall {
	return &modelCall{activities: a, attempt: attempt, chat: chat, note: callNote{Model: named}}
}

// stream makes the call and hands each chunk to hear. The log has the note before an HTTP request
// is sent. Of a model that sends none it has the note when the first chunk has come.
func (c *modelCall) stream(ctx context.Context, model llm.Model, req *llm.Request, hear func(llm.Chunk) error) error {
	provider, _, _ := strings.Cut(c.note.Model, "/")
	input := prompt.RequestTokens(req)
	c.note.Usage = runs.Usage{Provider: provider, Model: modelName(req.Model), Input: &input}
	if ctx.Err() != nil {
		c.note.Free = true
		return context.Cause(ctx)
	}
	for chunk, err := range model.Stream(c.trace(ctx), req) {
		if err != nil {
			return err
		}
		if err := c.addChunk(chunk); err != nil {
			return err
		}
		if err := hear(chunk); err != nil {
			return err
		}
	}
	return nil
}

// trace notes whether an HTTP request leaves the process, and keeps it back until the log has the
// note. A model that sends no HTTP request calls no hook. Flush fails only if ctx or the attempt
// ends, which ends the request as well.
func (c *modelCall) trace(ctx context.Context) context.Context {
	note := c.note
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			c.noted.Store(true)
			_ = errors.Join(c.attempt.Note(note), c.attempt.Flush(ctx))
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				c.sent.Store(true)
			}
		},
	})
}

func (c *modelCall) addChunk(chunk llm.Chunk) error {
	c.received = true
	if !c.noted.Swap(true) {
		if err := c.attempt.Note(c.note); err != nil {
			return err
		}
	}
	switch chunk := chunk.(type) {
	case llm.UsageReport:
		return c.report(chunk)
	case llm.Finish:
		c.finish = &chunk
	case llm.TextDelta:
		c.said.WriteString(chunk.Text)
	case llm.ReasoningDelta:
		c.said.WriteString(chunk.Text)
	case llm.ToolCallStart:
		c.said.WriteString(chunk.Name)
	case llm.ToolCallDelta:
		c.said.WriteString(chunk.Arguments)
	}
	c.chat.Chunk()
	return nil
}

// report takes over what the provider has counted so far. It notes the input in the log when that
// changes. It does not note the output, which grows with each report: an estimate of it is made
// from the text that the log has.
func (c *modelCall) report(r llm.UsageReport) error {
	estimate := c.note.Usage.Input
	known := c.note.Usage
	c.note.Usage = usageOf(llm.Finish{Usage: r.Usage, Model: r.Model, Provider: r.Provider})
	c.note.Usage.Total = nil // of an answer that goes on
	if c.note.Usage.Input == nil {
		c.note.Usage.Input = estimate
	}
	if value(known.Input) == value(c.note.Usage.Input) && known.Model == c.note.Usage.Model {
		return nil
	}
	return c.attempt.Note(c.note)
}

// end returns what the call has used, when stream has returned err. It ends the telemetry of the
// call. Unless the attempt goes on to finish, it leaves the log a last note, which makes the count
// exact.
func (c *modelCall) end(ctx context.Context, err error, finishes bool) runs.Usage {
	c.note.Free = c.note.Free || c.free(err)
	var u runs.Usage
	switch {
	case c.isReported():
		u = usageOf(*c.finish)
		c.note.Usage, c.note.Complete = u, true
		u.Calls = 1
		u = c.activities.priced(c.note.Model, u)
	case !c.note.Free:
		u = c.activities.estimated(c.note, c.said.String())
		c.note.Usage.Output = u.Output
	}
	r := telemetry.ChatResponse{Model: u.Model, Currency: c.activities.currency(), Error: kindOf(err), Estimated: u.Estimated != nil}
	if c.finish != nil {
		r.Finish = string(c.finish.Reason)
	}
	if !errors.Is(err, stream.ErrFenced) { // else the attempt that took the lane over counts the call
		r.Input, r.Output, r.Cost = u.Input, u.Output, u.Cost
		c.note.Metered = true
	}
	c.chat.End(r)
	if !finishes && (c.noted.Load() || !c.note.Free) {
		last, cancel := contextAfter(ctx)
		defer cancel()
		_ = errors.Join(c.attempt.Note(c.note), c.attempt.Flush(last)) // without it the count is an estimate by the note before
	}
	return u
}

// isReported reports whether the answer is complete and the provider has reported its total, or
// both input and output. Some model servers do not: their answers are estimated like those that are
// cut.
func (c *modelCall) isReported() bool {
	if c.finish == nil {
		return false
	}
	u := usageOf(*c.finish)
	return u.Total != nil || u.Input != nil && u.Output != nil
}

// free reports whether the call costs nothing: the provider refused it, or never got it.
func (c *modelCall) free(err error) bool {
	if err == nil || c.received {
		return false
	}
	if c.dialed.Load() && !c.sent.Load() {
		return true
	}
	var refusal *llm.Error
	return errors.As(err, &refusal) && refusal.Refused()
}

// estimated returns the usage of a call whose answer was cut, of which the log or the attempt has
// the text.
func (a *Activities) estimated(n callNote, said string) runs.Usage {
	u := n.Usage
	output := max(value(u.Output), prompt.TextTokens(said))
	u.Output, u.Calls = &output, 1
	u = a.priced(n.Model, u)
	u.Estimated = &runs.Estimate{Calls: 1, Input: value(u.Input), Output: output, Cost: value(u.Cost)}
	return u
}

// usageOfCutCall returns what the call of an attempt has used that did not finish; ok is false if
// it costs nothing.
func (a *Activities) usageOfCutCall(s stream.Spoken) (u runs.Usage, ok bool, err error) {
	if s.Done != nil || s.Note == nil {
		return u, false, nil
	}
	var n callNote
	if err := json.Unmarshal(s.Note, &n); err != nil {
		return u, false, fmt.Errorf("activities: note of a model call: %w", err)
	}
	switch {
	case n.Free:
		return u, false, nil
	case n.Complete:
		u = n.Usage
		u.Calls = 1
		return a.priced(n.Model, u), true, nil
	}
	return a.estimated(n, s.Said), true, nil
}

// meterCut records the metrics of the last of some attempts, if its worker died before it could.
// The attempts before it were recorded by the ones that followed them.
func (a *Activities) meterCut(ctx context.Context, dead []stream.Spoken) {
	if len(dead) == 0 {
		return
	}
	last := dead[len(dead)-1]
	u, ok, err := a.usageOfCutCall(last)
	var n callNote
	if err != nil || !ok || json.Unmarshal(last.Note, &n) != nil || n.Metered {
		return
	}
	provider, name, _ := strings.Cut(n.Model, "/")
	telemetry.CountCut(ctx, telemetry.ChatRequest{Provider: provider, Model: name},
		telemetry.ChatResponse{Model: u.Model, Input: u.Input, Output: u.Output, Cost: u.Cost, Currency: a.currency(), Estimated: u.Estimated != nil})
}

// stepUsage is the usage of one step.
type stepUsage struct {
	step string
	used []runs.Usage
}

// stepsOn returns the usage of the steps with model calls on the lane of an agent, after
// Place.After and Place.Since. A step that has finished is counted by its answer, another one by
// the notes of its attempts and by its summary.
func (a *Activities) stepsOn(ctx context.Context, p stream.Place) ([]stepUsage, error) {
	spoken, err := a.Log.Spoken(ctx, p)
	if err != nil || len(spoken) == 0 { // an attempt takes the lane before it has a summary made
		return nil, err
	}
	summaries, err := a.Log.Spoken(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	a.meterCut(ctx, spoken)
	var steps []stepUsage
	for _, s := range spoken {
		if slices.ContainsFunc(steps, func(known stepUsage) bool { return known.step == s.Step }) {
			continue
		}
		of := func(all []stream.Spoken, step string) []stream.Spoken {
			return slices.DeleteFunc(slices.Clone(all), func(other stream.Spoken) bool { return other.Step != step })
		}
		used, err := a.stepUsed(ctx, of(spoken, s.Step), of(summaries, s.Step+stepSummary))
		if err != nil {
			return nil, err
		}
		steps = append(steps, stepUsage{s.Step, used})
	}
	return steps, nil
}

// stepUsed returns the usage of a step by its attempts, and those at its summary. Steps that call
// no model have used nothing.
func (a *Activities) stepUsed(ctx context.Context, attempts, summaries []stream.Spoken) ([]runs.Usage, error) {
	calls := len(summaries) > 0 || slices.ContainsFunc(attempts, func(s stream.Spoken) bool { return s.Note != nil })
	done := slices.IndexFunc(attempts, func(s stream.Spoken) bool { return s.Done != nil })
	switch {
	case !calls:
		return nil, nil
	case done >= 0:
		answer, err := recordedModelAnswer(ctx, attempts[done].Done)
		return usageIn(answer), err
	}
	return a.cutAndSummaries(ctx, attempts, summaries)
}

// cutAndSummaries returns the usage of attempts that did not finish, and of summaries. It records
// the metrics of a summary whose worker died, unless another attempt has followed it.
func (a *Activities) cutAndSummaries(ctx context.Context, attempts, summaries []stream.Spoken) ([]runs.Usage, error) {
	a.meterCut(ctx, summaries)
	var used []runs.Usage
	for _, s := range attempts {
		u, ok, err := a.usageOfCutCall(s)
		if err != nil {
			return nil, err
		}
		if ok {
			used = append(used, u)
		}
	}
	for _, s := range summaries {
		more, err := a.summaryUsage(ctx, s)
		if err != nil {
			return nil, err
		}
		used = append(used, more...)
	}
	return used, nil
}

// summaryUsage returns what an attempt at a summary has used.
func (a *Activities) summaryUsage(ctx context.Context, s stream.Spoken) ([]runs.Usage, error) {
	if s.Done != nil {
		var made summary
		err := recordedKept(ctx, s.Done, &made)
		return []runs.Usage{made.Usage}, err
	}
	u, ok, err := a.usageOfCutCall(s)
	if err != nil || !ok {
		return nil, err
	}
	return []runs.Usage{u}, nil
}

// meterBefore records the metrics of the attempt that died before this one.
func (a *Activities) meterBefore(ctx context.Context, p stream.Place, attempt *stream.Attempt) error {
	spoken, err := a.Log.Spoken(ctx, p)
	if err != nil {
		return err
	}
	a.meterCut(ctx, slices.DeleteFunc(spoken, func(s stream.Spoken) bool { return s.Step != p.Step || s.Writer == attempt.Writer() }))
	return nil
}

// usedBefore returns what the step of an attempt has used besides the attempt's own call: in
// attempts that did not finish, and for summaries.
func (a *Activities) usedBefore(ctx context.Context, p stream.Place, attempt *stream.Attempt) ([]runs.Usage, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	spoken, err := a.Log.Spoken(ctx, p)
	if err != nil {
		return nil, err
	}
	summaries, err := a.Log.Spoken(ctx, summaryPlace(p))
	if err != nil {
		return nil, err
	}
	spoken = slices.DeleteFunc(spoken, func(s stream.Spoken) bool { return s.Step != p.Step || s.Writer == attempt.Writer() })
	summaries = slices.DeleteFunc(summaries, func(s stream.Spoken) bool { return s.Step != p.Step+stepSummary })
	used, err := a.cutAndSummaries(ctx, spoken, summaries)
	return runs.Sum(used), err
}

// unreported returns what model calls on the lane of an agent have used that the workflow was not
// told of, and counts it for the tenant's day. The lane must have been taken over.
func (a *Activities) unreported(ctx context.Context, p stream.Place) ([]runs.Usage, error) {
	steps, err := a.stepsOn(ctx, p)
	if err != nil {
		return nil, err
	}
	var all []runs.Usage
	for _, s := range steps {
		if err := a.count(ctx, p.Run, s.step, s.used); err != nil {
			return nil, err
		}
		all = append(all, s.used...)
	}
	return runs.Sum(all), nil
}

// usageIn returns all that an answer reports.
func usageIn(answer runs.ModelAnswer) []runs.Usage {
	return append([]runs.Usage{answer.Usage}, answer.OtherUsage...)
}

// stepSummary ends the id of the step that makes a summary for a model call.
const stepSummary = "/summary"

// summaryPlace returns where the agent that speaks at a place keeps its summaries. Records up to
// Place.After are of earlier steps, and are older.
func summaryPlace(p stream.Place) stream.Place {
	p.Lane, p.Since, p.After, p.Step = p.Lane.Summary(), max(p.Since, p.After), 0, p.Step+stepSummary
	return p
}

// value returns a count, 0 if it is not known.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// maxModelName bounds what a provider may call its model in a history.
const maxModelName = 128

// modelName returns what a provider calls its model, if that is a name.
func modelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>&"\`, r) {
			return '_'
		}
		return r
	}, s[:min(len(s), maxModelName)])
}

// maxTokenCount is more than any call can cost. What a provider reports beyond, or below zero, says
// nothing; added up, it could not be written any more.
const maxTokenCount = 1 << 40

func tokenCount(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxTokenCount {
		return nil
	}
	return n
}

func usageOf(f llm.Finish) runs.Usage {
	u := f.Usage
	return runs.Usage{
		Provider: f.Provider, Model: modelName(f.Model), Input: tokenCount(u.Input), Output: tokenCount(u.Output), Total: tokenCount(u.Total),
		Reasoning: tokenCount(u.Reasoning), CachedInput: tokenCount(u.CachedInput), CacheWrite: tokenCount(u.CacheWrite),
	}
}
