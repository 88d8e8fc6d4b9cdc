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
	if model, ok := wire.Unquote(string(s.Model)); ok && model != "" {
		a.finish.Model = fixUTF8(model)
	}
	if s.Usage != nil {
		a.finish.Usage = responseUsage(*s.Usage)
	}
}

// conclude takes the event that ends the response. Where the response has a
// status, that counts and not what the event is called: servers differ.
func (a *response) conclude(status string, s *state) error {
	if s == nil {
		return malformed("the last event has no response")
	}
	a.account(s)
	if s.Status != "" {
		status = s.Status
	}
	switch status {
	case "completed":
		a.finish.Reason = llm.FinishStop
	case "incomplete":
		a.finish.Reason = incompleteReason(s.Incomplete.Reason)
	default:
		fault := fault{message: "the response is " + status}
		if present(s.Error) {
			fault = parseFaultObject(s.Error)
		}
		return a.model.fault(a.req, fault)
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

func (a *response) end(err error) error {
	if !a.done {
		return wire.Truncated(err)
	}
	if a.finish.Reason == llm.FinishStop && a.calls.Len() > 0 {
		a.finish.Reason = llm.FinishToolCalls
	}
	a.endReasoning(nil)
	if rest := a.text.Flush(); rest != "" {
		a.out = append(a.out, llm.TextDelta{Text: rest})
	}
	whole := a.finish.Reason == llm.FinishToolCalls || a.finish.Reason == llm.FinishStop
	a.out, err = a.calls.Finish(a.out, whole)
	if err != nil {
		return err
	}
	a.out = append(a.out, a.finish)
	return nil
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
