package narration

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// RequiredOutput is the output that the final answer of a step must fit. The zero value requires
// nothing.
type RequiredOutput struct {
	*agents.Output
	// Repairs is how often invalid answers were sent back before.
	Repairs int
	// RepairID is the ID of the message that sends this answer back.
	RepairID string
	// Appendix follows the errors in that message.
	Appendix string
}

// KeptOutput is what the record of a checked answer keeps for later steps (stream.Result.Kept).
type KeptOutput struct {
	// Result is the value of a valid answer.
	Result json.RawMessage `json:"result,omitempty"`
	// Detail is why an answer is invalid; stream.Log.Detail and traces read it.
	Detail string `json:"detail,omitempty"`
}

// read extracts the JSON from an answer, and checks it. An incomplete answer is invalid even if its
// beginning fits the schema, such as 1 of 12.
func (o RequiredOutput) read(text, finish string) (json.RawMessage, error) {
	switch finish {
	case runs.FinishLength:
		return nil, &agents.AnswerError{Problems: []string{"the answer was cut at the model's limit of output tokens"}}
	case runs.FinishContentFilter:
		return nil, &agents.AnswerError{Problems: []string{"the model refused to answer, or its provider withheld the answer"}}
	}
	value, err := o.Read(text)
	if len(value) > agents.MaxOutput {
		err = &agents.AnswerError{Problems: []string{fmt.Sprintf("the answer has more than %d bytes", agents.MaxOutput)}}
	}
	return value, err
}

// Check checks a final answer: one without calls and questions that was neither cancelled nor held
// back by a limit. A refused or withheld answer is not sent back to the model. Check sets answer.Output, and puts
// the value of a valid answer, or the message about an invalid one, into the result. An error concerns the schema.
func (o RequiredOutput) Check(text string, answer *runs.ModelAnswer, result *stream.Result) error {
	isFinal := answer.Count()+len(answer.Questions) == 0 && answer.Outcome == runs.OutcomeSuccess && answer.Exceeded == nil
	if o.Output == nil || !isFinal {
		return nil
	}
	value, err := o.read(text, answer.Finish)
	var invalid *agents.AnswerError
	var kept KeptOutput
	switch {
	case err == nil:
		answer.Output, kept.Result = runs.OutputValid, value
	case !errors.As(err, &invalid):
		return err
	case o.Repairs < o.MaxRepairs() && answer.Finish != runs.FinishContentFilter:
		answer.Output, kept.Detail = runs.OutputRepair, invalid.Detail()
		repair := invalid.Repair()
		if o.Appendix != "" {
			repair += "\n\n" + o.Appendix
		}
		result.Repair = &agui.Message{ID: o.RepairID, Role: agui.RoleUser, Content: agui.TextContent(repair)}
	default:
		answer.Output, kept.Detail = runs.OutputInvalid, invalid.Detail()
	}
	if result.Kept, err = json.Marshal(kept); err != nil {
		return fmt.Errorf("narration: encode output: %w", err)
	}
	return nil
}
