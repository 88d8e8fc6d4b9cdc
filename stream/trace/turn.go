package trace

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// beginTurn begins the turn of a model call, and ends the turn before.
func (f *Fold) beginTurn(a *agent, rec *stream.Record) {
	id := path.Dir(rec.Step)
	if a.turn.isOpen() && a.turnID == id {
		return
	}
	f.closeTurn(a, rec.Time)
	a.turn = f.begin(rec, rec.Time, a.container(), KindTurn, "turn "+path.Base(id))
	a.turnID, a.model, a.calls = id, nil, nil
}

// closeTurn ends the turn of an agent with the last of its calls.
func (f *Fold) closeTurn(a *agent, at time.Time) {
	if !a.turn.isOpen() {
		return
	}
	if !a.turn.lastEnd.IsZero() {
		at = a.turn.lastEnd
	}
	status := StatusFinished
	if a.model != nil && a.model.span.Status != StatusRunning {
		status = a.model.span.Status
	}
	f.end(a.turn, at, status)
}

// endModel ends a model call.
func (f *Fold) endModel(rec *stream.Record, u *unit, result *doneResult) error {
	var answer runs.ModelAnswer
	if err := decodeAnswer(rec, result.Answer, &answer); err != nil {
		return err
	}
	u.node.span.MessageID = answer.MessageID
	if answer.Usage != (runs.Usage{}) {
		// The log may lack the note of a short answer. The models of earlier attempts may be others.
		if u.attempt == nil || u.attempt.Model == "" {
			u.node.span.Model, u.node.span.Name = "", "model"
		}
		u.node.addUsage(answer.Usage)
		if u.attempt != nil {
			u.attempt.Model, u.attempt.Usage = u.node.span.Model, u.node.span.Usage
		}
	}
	f.usage = runs.Sum(f.usage, []runs.Usage{answer.Usage}, answer.OtherUsage)
	f.addCalls(f.agentOn(rec.Lane), result)
	switch {
	case answer.Outcome == runs.OutcomeCancelled:
		f.setCancelled(u)
		f.end(u.node, rec.Time, StatusCancelled)
	case answer.Exceeded != nil:
		u.node.span.Error = newError(answer.Exceeded.Code, "the model was not called: approvers have to allow more first", "")
		f.end(u.node, rec.Time, StatusFinished)
	case answer.Output.IsInvalid():
		return f.endInvalid(rec, u, result, answer)
	case answer.IsIncomplete(): // a note, as for an answer that is sent back: the call has not failed
		u.node.span.Error = newError(answer.Finish, incompleteMessages[answer.Finish], "")
		f.end(u.node, rec.Time, StatusFinished)
	default:
		f.end(u.node, rec.Time, StatusFinished)
	}
	return nil
}

// incompleteMessages describe incomplete answers, by ModelAnswer.Finish.
var incompleteMessages = map[string]string{
	runs.FinishLength:        "the answer was cut at the model's limit of output tokens",
	runs.FinishContentFilter: "the model refused to answer, or its provider withheld the answer",
}

// endInvalid ends a model call whose answer does not fit the required output. An answer that is sent
// back is no failure.
func (f *Fold) endInvalid(rec *stream.Record, u *unit, result *doneResult, answer runs.ModelAnswer) error {
	var kept struct {
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(result.Kept, &kept); err != nil {
		return fmt.Errorf("trace: output of record %d: %w", rec.Seq, err)
	}
	status, message := StatusFailed, "the answer does not fit the schema: "
	if answer.Output == runs.OutputRepair {
		status, message = StatusFinished, "the answer does not fit the schema, and was sent back: "
	}
	u.node.span.Error = newError(answer.InvalidCode(), message+kept.Detail, hints[answer.Finish])
	f.end(u.node, rec.Time, status)
	return nil
}

// endSummary ends the model call that has made a summary.
func (f *Fold) endSummary(rec *stream.Record, u *unit, result *doneResult) error {
	var kept struct {
		Usage runs.Usage `json:"usage"`
	}
	if err := json.Unmarshal(result.Kept, &kept); err != nil {
		return fmt.Errorf("trace: summary of record %d: %w", rec.Seq, err)
	}
	if kept.Usage != (runs.Usage{}) { // the answer of the model call that needs it has it as well
		u.node.addUsage(kept.Usage)
	}
	f.end(u.node, rec.Time, StatusFinished)
	return nil
}

// setCancelled notes that the last attempt of a unit was cancelled.
func (f *Fold) setCancelled(u *unit) {
	if u.attempt != nil {
		u.attempt.Status = StatusCancelled
	}
}

// addCalls notes the tool calls of an agent's message.
func (f *Fold) addCalls(a *agent, result *doneResult) {
	for _, m := range result.Messages {
		if m.Role != agui.RoleAssistant {
			continue
		}
		a.calls = nil
		for _, c := range m.ToolCalls {
			a.calls = append(a.calls, c.ID)
			f.callWith(c.ID, c.Function.Name).agent = a
		}
	}
}
