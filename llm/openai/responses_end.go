package openai

import (
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// readUsage records model and usage from a response object, which can be nil.
func (r *response) readUsage(s *responseObject) {
	if s == nil {
		return
	}
	r.SetModel(s.Model)
	if s.Usage != nil {
		r.Finish.Usage = s.Usage.counts()
	}
}

// conclude processes the event that ends the response. status is the status in the event's type.
// The response's own status takes precedence, because servers use the event types differently. A
// failed or cancelled response is an error.
func (r *response) conclude(status string, s *responseObject) error {
	if s == nil {
		return wire.Malformed("the last event has no response")
	}
	r.readUsage(s)
	if s.Status != "" {
		status = s.Status
	}
	switch status {
	case "completed":
		r.Finish.Reason = llm.FinishStop
	case "incomplete":
		r.Finish.Reason = incompleteReason(s.Incomplete.Reason)
	default:
		fault := wire.Fault{Message: "the response is " + status}
		if wire.IsPresent(s.Error) {
			fault = faultOf(s.Error)
		}
		return r.model.api.Failed(r.req, fault)
	}
	r.done = true
	return nil
}

// incompleteReason maps the reason of an incomplete response.
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

// End implements [wire.Reply]. Only the event that ends the response shows that it is complete.
// Open reasoning has no successor at this point, so it is not sent back.
func (r *response) End(err error) error {
	if !r.done {
		return wire.Truncated(err)
	}
	r.endReasoning(nil)
	if rest := r.text.Flush(); rest != "" {
		r.Emit(llm.TextDelta{Text: rest})
	}
	r.Finish.Reason = reasonOfRefusal(r.refused, r.Finish.Reason, r.Calls.Len())
	return r.Close()
}
