package api

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/sockets"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// socketRuns starts the runs that frames of sockets ask for, on the path of all inputs.
type socketRuns struct{ s *Server }

func (s *Server) runsOfSockets() sockets.Runs { return socketRuns{s} }

// Accept takes the first stages of the path (see runs.go).
func (r socketRuns) Accept(ctx context.Context, name string, body json.RawMessage) (sockets.Run, error) {
	agent, err := r.s.authorize(name)
	if err != nil {
		return nil, err
	}
	input, err := decodeInput(body)
	if err != nil {
		return nil, problem.Within("/input", err)
	}
	in, err := r.s.accept(ctx, agent, input)
	if err != nil {
		return nil, problem.Within("/input", err)
	}
	return socketRun{r.s, in}, nil
}

// socketRun is the run of an input that came as a frame.
type socketRun struct {
	s  *Server
	in *acceptedInput
}

func (r socketRun) Place(ctx context.Context) error { return r.s.place(ctx, r.in) }
func (r socketRun) Run() stream.Run                 { return r.in.run }
func (r socketRun) Agent() string                   { return r.in.agent.Name }
func (r socketRun) View() *view.View                { return r.in.view }
func (r socketRun) Steered() *commands.Steered      { return r.in.steered }
func (r socketRun) Abandon(ctx context.Context)     { r.s.abandon(ctx, r.in) }
func (r socketRun) Close()                          { r.in.Close() }
