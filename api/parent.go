package api

import (
	"context"
	"net/http"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
)

// inherit makes the new thread of an input a fork of the parent run that it names. It returns the
// thread's last record.
func (s *Server) inherit(ctx context.Context, in *acceptedInput) (last uint64, err error) {
	parent := stream.Run{Thread: stream.Thread{Tenant: in.run.Tenant, ID: in.props.ParentThreadID}, ID: in.input.ParentRunID}
	if in.props.ParentThreadID == "" {
		threads, err := s.Log.FindRun(ctx, in.run.Tenant, in.input.ParentRunID)
		if err != nil {
			return 0, err
		}
		if len(threads) != 1 {
			return 0, errNoParent(len(threads))
		}
		parent.Thread = threads[0]
	}
	if err := s.threads.Fork(ctx, parent, in.run.Thread); err != nil {
		return 0, err
	}
	return s.Log.LastOf(ctx, in.run.Thread)
}

func errNoParent(found int) *problem.Problem {
	detail := "no thread has a run with the id in parentRunId: leave that out, or name the run's thread here"
	if found > 1 {
		detail = "several threads have a run with the id in parentRunId: name the one that is meant"
	}
	p := problem.New(http.StatusUnprocessableEntity, "unknown_parent", detail)
	p.Pointer = parentThreadPointer
	return p
}

const parentThreadPointer = "/forwardedProps/perdure/parentThreadId"
