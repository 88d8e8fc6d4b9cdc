package openai

import (
	"github.com/openai/openai-go/v3/responses"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// account notes what the last chunk is to report.
func (a *response) account(s *state) {
	if s == nil {
		return
	}
	a.SetModel(s.Model)
	if s.Usage != nil {
		a.Finish.Usage = responseUsage(*s.Usage)
	}
}

// conclude takes the event that ends the response. Where the response has a
// status, that counts and not what the event is called: servers differ.
func (a *response) conclude(status string, s *state) error {
	if s == nil {
		return wire.Malformed("the last event has no response")
	}
	a.account(s)
	if s.Status != "" {
		status = s.Status
	}
	switch status {
	case "completed":
		a.Finish.Reason = llm.FinishStop
	case "incomplete":
		a.Finish.Reason = incompleteReason(s.Incomplete.Reason)
	default:
		fault := wire.Fault{Message: "the response is " + status}
		if wire.IsPresent(s.Error) {
			fault = faultOf(s.Error)
		}
		return a.model.api.Failed(a.req, fault)
	}
	a.done = true
	return nil
}

func incompleteReason(reason string) llm.FinishReason {
	switch reason {
	case "max_output_tokens":
		return llm.FinishLength
	case "content_filter":
		return llm.FinishContentFilter
	default:
		return llm.FinishOther
	}
}

// End closes the completion at the end of the stream; err is why it ended, if that was not regular.
func (a *response) End(err error) error {
	if !a.done {
		return wire.Truncated(err)
	}
	a.endReasoning(nil)
	if rest := a.text.Flush(); rest != "" {
		a.Emit(llm.TextDelta{Text: rest})
	}
	return a.Close()
}

func responseUsage(u responses.ResponseUsage) llm.Usage {
	return llm.Usage{
		Input:       count(u.InputTokens, u.JSON.InputTokens),
		Output:      count(u.OutputTokens, u.JSON.OutputTokens),
		Total:       count(u.TotalTokens, u.JSON.TotalTokens),
		Reasoning:   count(u.OutputTokensDetails.ReasoningTokens, u.OutputTokensDetails.JSON.ReasoningTokens),
		CachedInput: count(u.InputTokensDetails.CachedTokens, u.InputTokensDetails.JSON.CachedTokens),
		CacheWrite:  count(u.InputTokensDetails.CacheWriteTokens, u.InputTokensDetails.JSON.CacheWriteTokens),
	}
}
