package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
)

// A server may elicit: ask people something in the middle of a call. One that speaks roundTrips ends the call with what
// it asks, and takes the answers with another call, whoever makes that and whenever. An older one asks over the
// connection while the call is under way, which nobody can keep open until a person has answered: such a call is given
// up, and made anew with the answer at hand. There is no telling which call such a request belongs to, so an older
// server that may ask is called one call at a time.

// roundTrips is the first version of MCP in which a call ends with what the server asks.
const roundTrips = "2026-07-28"

// elicitation declares that servers may ask, if they may.
func (s *Server) elicitation(options *mcp.ClientOptions) {
	if !s.cfg.Elicitation {
		return
	}
	options.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	options.ElicitationHandler = s.elicit
}

// asker is the call that an older server may ask in.
type asker struct {
	ctx  context.Context
	fail context.CancelCauseFunc

	mu      sync.Mutex
	answers []tools.Answer // those that were not asked for yet
}

// take returns the answer to a question: a server may ask for several at once, in any order.
func (a *asker) take(question string) (tools.Answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.answers, func(answer tools.Answer) bool { return answer.Question == question })
	if i < 0 {
		return tools.Answer{}, false
	}
	answer := a.answers[i]
	a.answers = slices.Delete(a.answers, i, i+1)
	return answer, true
}

// alone gives a call of an older server that may ask the server to itself. done must be called.
func (s *Server) alone(ctx context.Context, fail context.CancelCauseFunc, session *mcp.ClientSession) (done func(), err error) {
	if answer := session.InitializeResult(); !s.cfg.Elicitation || answer != nil && answer.ProtocolVersion >= roundTrips {
		return func() {}, nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.setAsker(&asker{ctx: ctx, fail: fail, answers: slices.Clone(tools.Answers(ctx))})
	return func() {
		s.setAsker(nil)
		<-s.turn
	}, nil
}

func (s *Server) setAsker(a *asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asker = a
}

// elicit answers an older server, or ends the call that it asks in.
func (s *Server) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	s.mu.Lock()
	by := s.asker
	s.mu.Unlock()
	if by == nil {
		return nil, errors.New("nobody can be asked outside of a call")
	}
	q, err := s.questionOf(req.Params)
	if err != nil {
		return nil, err
	}
	if answer, ok := by.take(q.Digest()); ok {
		return elicitResult(answer)
	}
	by.fail(tools.Raise(by.ctx, q))
	return nil, errors.New("the call is given up")
}

// questionOf returns what a server asks.
func (s *Server) questionOf(p *mcp.ElicitParams) (tools.Question, error) {
	if p.Mode != "" && p.Mode != "form" || p.RequestedSchema == nil {
		return tools.Question{}, fmt.Errorf("it elicits by %.40q, which is not supported", p.Mode)
	}
	schema, err := json.Marshal(p.RequestedSchema)
	return tools.Question{Reason: tools.ReasonInput, Message: s.secrets().Text(p.Message), ResponseSchema: schema}, err
}

// elicitResult returns an answer as a server reads it.
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
		return nil, fmt.Errorf("mcptool: the answer is no object: %w", err)
	}
	return result, nil
}

// rounds is where a call is that a server has ended with what it asks: the state of its questions.
type rounds struct {
	// Request is the server's own state, Asks what it asks, by its names.
	Request   string                       `json:"request,omitempty"`
	Asks      map[string]tools.Question    `json:"asks"`
	Responses map[string]*mcp.ElicitResult `json:"responses,omitempty"`
}

// addAnswers puts the answers that a call has into its params. It fails with the next question if the server has asked for
// more than one answer.
func addAnswers(ctx context.Context, params *mcp.CallToolParams) error {
	answers := tools.Answers(ctx)
	if len(answers) == 0 || len(answers[len(answers)-1].State) == 0 {
		return nil
	}
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

// raiseQuestion ends a call with the first thing that the server asks.
func (s *Server) raiseQuestion(ctx context.Context, result *mcp.CallToolResult) error {
	r := rounds{Request: result.RequestState, Asks: map[string]tools.Question{}}
	for name, request := range result.InputRequests {
		p, ok := request.(*mcp.ElicitParams)
		if !ok {
			return fmt.Errorf("it wants %T, which is not supported", request)
		}
		q, err := s.questionOf(p)
		if err != nil {
			return err
		}
		r.Asks[name] = q
	}
	if len(r.Asks) == 0 {
		return errors.New("it asks to be called later")
	}
	return r.raise(ctx)
}

// next returns the name of what was not asked yet; "" = there is nothing.
func (r *rounds) next() string {
	for _, name := range slices.Sorted(maps.Keys(r.Asks)) {
		if r.Responses[name] == nil {
			return name
		}
	}
	return ""
}

// raise asks the next question, which has where the call is as its state.
func (r *rounds) raise(ctx context.Context) error {
	state, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("mcptool: encode state: %w", err)
	}
	q := r.Asks[r.next()]
	q.State = state
	return tools.Raise(ctx, q)
}
