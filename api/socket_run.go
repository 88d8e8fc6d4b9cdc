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

// socketRuns implements sockets.Runs: it places the inputs of run frames on the same path as
// startRun (runs.go), and finds segments as runEvents does (segment.go). It exists because the
// package sockets cannot import this one.
type socketRuns struct{ s *Server }

// runsOfSockets returns the sockets.Runs of the server.
func (s *Server) runsOfSockets() sockets.Runs { return socketRuns{s} }

// Accept implements sockets.Runs: the stages findAgent, decode and prepare. Pointers of
// its problems begin with /input, the member of the frame that holds the input.
func (r socketRuns) Accept(ctx context.Context, name, revision string, body json.RawMessage) (sockets.Run, error) {
	agent, err := r.s.findAgent(ctx, name, revision)
	if err != nil {
		return nil, err
	}
	input, err := decodeInput(body)
	if err != nil {
		return nil, problem.Within("/input", err)
	}
	in, err := r.s.prepare(ctx, agent, input, nil)
	if err != nil {
		return nil, problem.Within("/input", err)
	}
	return socketRun{r.s, in}, nil
}

// Segment implements sockets.Runs.
func (r socketRuns) Segment(ctx context.Context, run stream.Run, o view.Options) (stream.Run, view.Options, error) {
	return r.s.segmentAt(ctx, run, o)
}

// socketRun implements sockets.Run for an accepted input. The session that requested it owns it,
// and closes it.
type socketRun struct {
	s  *Server
	in *preparedInput
}

func (r socketRun) StartOrAttach(ctx context.Context) error {
	if err := r.s.startOrAttach(ctx, r.in); err != nil {
		return err
	}
	r.s.auditDecisions(ctx, r.in)
	r.in.input, r.in.resume = nil, nil // the stream may last for hours
	return nil
}

func (r socketRun) Run() stream.Run                          { return r.in.run }
func (r socketRun) Agent() string                            { return r.in.agent.Name }
func (r socketRun) View() *view.View                         { return r.in.view }
func (r socketRun) Steered() *commands.Steered               { return r.in.steered }
func (r socketRun) CancelIfDisconnected(ctx context.Context) { r.s.cancelIfDisconnected(ctx, r.in) }
func (r socketRun) Close()                                   { r.in.Close() }
