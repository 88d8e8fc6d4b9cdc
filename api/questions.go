package api

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// A tool may ask something in the middle of its call. Everybody who may use the thread may answer, with what the tool's schema describes.

func isRaised(question *agui.Interrupt) bool {
	_, raised := question.Metadata[stream.MetadataQuestion]
	return raised
}

// suits refuses an invalid answer to a question; at is its position in the request.
func (s *Server) suits(question *agui.Interrupt, v verdict, at string) error {
	answers := v.Decision == string(runs.DecisionAnswer)
	switch {
	case !isRaised(question) && answers:
		var text *string
		if err := json.Unmarshal(v.Content, &text); err != nil || text == nil {
			return unfit(contentPointer(at), "must be text: the result to give the model")
		}
		return nil
	case !isRaised(question), v.Decision == string(runs.DecisionReject), v.Decision == string(runs.DecisionCancel):
		return nil
	case !answers:
		return unfit(at+"/decision", `must be "answer" or "reject": it is a tool that asks`)
	case s.Tools == nil || len(question.ResponseSchema) == 0:
		return nil
	}
	pointer, reason, err := s.Tools.Fits(question.ResponseSchema, v.Content)
	if err != nil || reason == "" {
		return err
	}
	return unfit(contentPointer(at)+pointer, reason)
}

// suitsLimit refuses an invalid decision about a limit.
func (v verdict) suitsLimit(at string) error {
	switch {
	case v.Decision == string(runs.DecisionAnswer):
		return unfit(at+"/content", "the question is whether the run may go on: approve, edit or reject")
	case v.Remember != "":
		return unfit(at+"/remember", "each limit that a run passes is asked about")
	}
	return nil
}

// contentPointer is the position of an answer. An entry of resume for a question is nothing but the answer.
func contentPointer(at string) string {
	if at == "" {
		return "/content"
	}
	return at
}
