package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
)

// roundTrips is the first version of MCP in which a call ends with the server's question, and the
// answer is part of another call. [rounds] implements it.
//
// In earlier versions the server sends elicitation/create while the call is open. The call cannot
// stay open until the user answers, so it is abandoned and repeated when the answer is known
// ([asker]). The request does not identify its call. Therefore such a server gets one call at a
// time if it may elicit ([Server.alone]).
const roundTrips = "2026-07-28"

// elicitation declares the client capability elicitation if the definition permits it.
func (s *Server) elicitation(options *mcp.ClientOptions) {
	if !s.cfg.Elicitation {
		return
	}
	options.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	options.ElicitationHandler = s.elicit
}

// reserve blocks until no other call of the server is active, if the server may elicit and is older
// than [roundTrips]. cancel must cancel ctx. The caller must call done after the call. The error is
// that of ctx.
func (s *Server) reserve(ctx context.Context, cancel context.CancelCauseFunc, session *mcp.ClientSession) (done func(), err error) {
	if initialized := session.InitializeResult(); !s.cfg.Elicitation || initialized != nil && initialized.ProtocolVersion >= roundTrips {
		return func() {}, nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.setAsker(&asker{ctx: ctx, fail: cancel, answers: slices.Clone(tools.Answers(ctx))})
	return func() {
		s.setAsker(nil)
		<-s.turn
	}, nil
}

// setAsker sets the call that elicit belongs to; nil = none.
func (s *Server) setAsker(a *asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asker = a
}

// elicit handles elicitation/create of an older server. It returns the answer if an earlier attempt
// of the call was ended with this question, else it ends the active call with the question.
func (s *Server) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	s.mu.Lock()
	active := s.asker
	s.mu.Unlock()
	if active == nil {
		return nil, errors.New("a question is possible only in a call")
	}
	q, err := s.questionOf(req.Params)
	if err != nil {
		return nil, err
	}
	if answer, ok := active.take(q.Digest()); ok {
		return elicitResult(answer)
	}
	active.fail(tools.Raise(active.ctx, q))
	return nil, errors.New("the call has ended with the question")
}

// questionOf converts an elicitation to a question. It supports only the mode form.
func (s *Server) questionOf(p *mcp.ElicitParams) (tools.Question, error) {
	if p.Mode != "" && p.Mode != "form" || p.RequestedSchema == nil {
		return tools.Question{}, fmt.Errorf("the elicitation mode %.40q is not supported", p.Mode)
	}
	schema, err := json.Marshal(p.RequestedSchema)
	return tools.Question{Reason: tools.ReasonInput, Message: s.secrets().Text(p.Message), ResponseSchema: json.RawMessage(s.secrets().Text(string(schema)))}, err
}

// elicitResult converts an answer to the result of an elicitation.
func elicitResult(a tools.Answer) (*mcp.ElicitResult, error) {
	switch a.Status {
	case tools.Declined:
		return &mcp.ElicitResult{Action: "decline"}, nil
	case tools.Answered:
	default:
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	result := &mcp.ElicitResult{Action: "accept"}
	if err := json.Unmarshal(a.Content, &result.Content); err != nil {
		return nil, fmt.Errorf("mcptool: the answer is not an object: %w", err)
	}
	return result, nil
}

// rounds is the state of a call that a server of [roundTrips] or later has ended with questions. A
// result can contain several, which are asked one after the other; the state travels as
// [tools.Question.State].
type rounds struct {
	// Request is the server's opaque requestState. Asks are its questions by name, and Responses
	// the answers so far.
	Request   string                       `json:"request,omitempty"`
	Asks      map[string]tools.Question    `json:"asks"`
	Responses map[string]*mcp.ElicitResult `json:"responses,omitempty"`
}

// addAnswers adds the answers of earlier attempts to the params of a call. If the server has asked
// several questions and one has no answer yet, it returns that question as a *tools.Raised error.
func addAnswers(ctx context.Context, params *mcp.CallToolParams) error {
	answers := tools.Answers(ctx)
	if len(answers) == 0 || len(answers[len(answers)-1].State) == 0 {
		return nil
	}
	// Only the last answer is relevant: its State contains the earlier ones.
	last := answers[len(answers)-1]
	var r rounds
	if err := json.Unmarshal(last.State, &r); err != nil {
		return fmt.Errorf("mcptool: state of a question: %w", err)
	}
	response, err := elicitResult(last)
	if err != nil {
		return err
	}
	if r.Responses == nil {
		r.Responses = map[string]*mcp.ElicitResult{}
	}
	// The answer belongs to the first question without a response.
	r.Responses[r.next()] = response
	if r.next() != "" {
		return r.raise(ctx)
	}
	params.RequestState, params.InputResponses = r.Request, mcp.InputResponseMap{}
	for name, response := range r.Responses {
		params.InputResponses[name] = response
	}
	return nil
}

// raiseQuestion returns the *tools.Raised error of the first question in a result, or another error
// if a question is not supported.
func (s *Server) raiseQuestion(ctx context.Context, result *mcp.CallToolResult) error {
	r := rounds{Request: result.RequestState, Asks: map[string]tools.Question{}}
	for name, request := range result.InputRequests {
		p, ok := request.(*mcp.ElicitParams)
		if !ok {
			return fmt.Errorf("the request %T is not supported", request)
		}
		q, err := s.questionOf(p)
		if err != nil {
			return err
		}
		r.Asks[name] = q
	}
	if len(r.Asks) == 0 {
		return errors.New("the result has no question")
	}
	return r.raise(ctx)
}

// next returns the name of the first question without an answer, in the order of the names; "" =
// none.
func (r *rounds) next() string {
	for _, name := range slices.Sorted(maps.Keys(r.Asks)) {
		if r.Responses[name] == nil {
			return name
		}
	}
	return ""
}

// raise returns the *tools.Raised error of the next question.
func (r *rounds) raise(ctx context.Context) error {
	state, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("mcptool: encode state: %w", err)
	}
	q := r.Asks[r.next()]
	q.State = state
	return tools.Raise(ctx, q)
}
