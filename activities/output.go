package activities

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file finds the output that is required of an agent's answer, and reads the values of answers.
// The provider and the system message get the schema before the call. The call validates the answer,
// and its record keeps the value, or the message that sends the answer back. An advance validates the
// answers of subagents, which have no model call of their own.

// output returns the output that is required of a step's agent with a definition: that of the step,
// or the agent's own; nil = any text.
func (a *Activities) output(ctx context.Context, s runs.Step, d *agents.Definition) (*agents.Output, error) {
	output, err := a.stepOutput(ctx, s)
	if output != nil || err != nil {
		return output, err
	}
	return d.Output, nil
}

// requiredOutput returns the output as the call of a model, or of a remote agent, checks it.
func requiredOutput(in runs.ModelCall, o *agents.Output) narration.RequiredOutput {
	return narration.RequiredOutput{Output: o, Repairs: in.Repairs, RepairID: runOf(in.Run).Identify("repair", in.ID)}
}

// countOutput counts the answer of a model call whose record was written, for metrics. An answer that was
// sent back counts later: with the one that follows.
func countOutput(ctx context.Context, in runs.ModelCall, answer runs.ModelAnswer) {
	switch {
	case answer.Output == runs.OutputInvalid:
		telemetry.CountOutput(ctx, in.Agent, telemetry.OutputFailed)
	case answer.Output == runs.OutputValid && in.Repairs > 0:
		telemetry.CountOutput(ctx, in.Agent, telemetry.OutputRepaired)
	case answer.Output == runs.OutputValid:
		telemetry.CountOutput(ctx, in.Agent, telemetry.OutputValid)
	}
}

// keptResult returns the result that a record keeps; nil = record is 0.
func (a *Activities) keptResult(ctx context.Context, t stream.Thread, record uint64) (json.RawMessage, error) {
	if record == 0 {
		return nil, nil
	}
	var kept narration.KeptOutput
	err := a.Log.Kept(ctx, t, record, &kept)
	return withoutHTMLEscapes(kept.Result), err
}

// escapes matches the escapes of JSON strings: those that encoding/json makes for HTML, and all others,
// so that the second of two backslashes does not begin one.
var escapes = regexp.MustCompile(`\\(?:u003c|u003e|u0026|.)`)

// withoutHTMLEscapes replaces the escapes that the log's encoder has made for HTML: models and people
// read results as text.
func withoutHTMLEscapes(raw json.RawMessage) json.RawMessage {
	return escapes.ReplaceAllFunc(raw, func(escape []byte) []byte {
		switch string(escape) {
		case `\u003c`:
			return []byte("<")
		case `\u003e`:
			return []byte(">")
		case `\u0026`:
			return []byte("&")
		}
		return escape
	})
}

// stepOutput returns the output that a step requires of its agent; nil = the step requires none.
func (a *Activities) stepOutput(ctx context.Context, s runs.Step) (*agents.Output, error) {
	agent, revision, err := a.outputAgent(ctx, s)
	if err != nil || agent == "" {
		return nil, err
	}
	d, err := a.Agents.Revision(ctx, s.Run.Tenant, agent, revision)
	if err == nil {
		d, err = a.withTree(ctx, d, runOf(s.Run).Thread, s.PipelineStep.Tree)
	}
	if err != nil {
		return nil, err
	}
	step := pipeline.StepAt(d, s.PipelineStep.Path)
	if step == nil {
		return nil, nil
	}
	return step.Output, nil
}

// outputAgent returns the agent and the revision whose step defines the output; "" = the output is
// any text. That is the pipeline's agent. The step itself runs with that agent if it is inline;
// otherwise the advance that began the step has stored the pipeline's agent with the prompt.
func (a *Activities) outputAgent(ctx context.Context, s runs.Step) (agent, revision string, err error) {
	switch {
	case s.PipelineStep == nil:
		return "", "", nil
	case s.PipelineStep.Inline:
		return s.Agent, s.Revision, nil
	case len(s.PipelineStep.Prompts) == 0:
		return "", "", nil
	}
	// The first prompt is of the advance that began the step.
	var stored storedAdvance
	err = a.Log.Kept(ctx, runOf(s.Run).Thread, s.PipelineStep.Prompts[0], &stored)
	return stored.Agent, stored.Revision, err
}

// outputOf returns the output as a provider takes it; nil = any text.
func outputOf(o *agents.Output) *llm.Output {
	if o == nil {
		return nil
	}
	return &llm.Output{Schema: o.Schema, Native: o.Native}
}

// outputSection returns the section of the system message about the output. It is also sent if the
// provider gets the schema, because some providers take none, and none enforces all of one.
func outputSection(o *agents.Output) string {
	return "Your final answer must be JSON that fits this JSON Schema, and nothing else:\n\n<schema>\n" + string(o.Schema) + "\n</schema>"
}
