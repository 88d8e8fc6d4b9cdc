package activities

import (
	"context"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// turn is a model call with what the log and the catalog have for it.
type turn struct {
	in           runs.ModelCall
	definition   *agents.Definition // of the agent; its model is the one that this attempt calls
	chain        modelChain         // all models of the agent
	conversation *snapshot.Snapshot // as of the attempt's first record
	attempt      *stream.Attempt
}

// prepareTurn reads what a turn needs. The error is stream.ErrCancelled if a cancel was requested
// before the attempt began. With an error, members that could not be read are nil.
func (a *Activities) prepareTurn(ctx context.Context, in runs.ModelCall, attempt *stream.Attempt) (t turn, err error) {
	t.in, t.attempt = in, attempt
	if t.definition, err = a.definition(ctx, in.Step); err != nil {
		return t, err
	}
	if t.chain, err = a.modelChain(ctx, in, t.definition, attempt); err != nil {
		return t, err
	}
	t.definition = t.definition.WithModel(t.chain.model())
	if t.conversation, err = a.conversation(ctx, in, attempt.First()); err != nil {
		return t, err
	}
	// The cancel may be older than the worker's subscription to announcements, which is older than the
	// attempt's first record. So the conversation has that request.
	if t.conversation.LastCancel > 0 || in.Stops {
		cancelRequested, err := a.cancelRequested(ctx, in.Step)
		if err == nil && cancelRequested {
			err = stream.ErrCancelled
		}
		return t, err
	}
	return t, nil
}
