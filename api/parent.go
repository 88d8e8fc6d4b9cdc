package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// forkParent creates the new thread of an input as a fork of the parent run that the input names.
// It returns the sequence of the thread's last record, which startOrAttach then works on. A parent
// that does not exist is a 422 unknown_parent without parentThreadId, and a 404 unknown_run with
// it. Forking again, in another round or on another node, is the same fork.
func (s *Server) forkParent(ctx context.Context, in *preparedInput) (last uint64, err error) {
	parent := stream.Run{Thread: stream.Thread{Tenant: in.run.Tenant, ID: in.props.ParentThreadID}, ID: in.input.ParentRunID}
	if in.props.ParentThreadID == "" {
		// The search covers the caller's tenant only. Threads that the caller may not read are
		// unknown to it.
		threads, err := s.Log.FindRun(ctx, in.run.Tenant, in.input.ParentRunID)
		if err != nil {
			return 0, err
		}
		threads = slices.DeleteFunc(threads, func(t stream.Thread) bool { return s.access.Check(ctx, t, policy.ReadThread) != nil })
		if len(threads) != 1 {
			return 0, errUnknownParent(len(threads))
		}
		parent.Thread = threads[0]
	}
	if err := s.threads.Fork(ctx, parent, in.run.Thread); err != nil {
		return 0, err
	}
	return s.Log.LastOf(ctx, in.run.Thread)
}

// errUnknownParent returns the 422 unknown_parent for a parent run ID that no thread, or more than
// one thread, has. found is the number of threads.
func errUnknownParent(found int) *problem.Problem {
	detail := "no thread has a run with the id in parentRunId: omit parentRunId, or set parentThreadId to the thread of that run"
	if found > 1 {
		detail = "several threads have a run with the id in parentRunId: set parentThreadId to the thread of that run"
	}
	p := problem.New(http.StatusUnprocessableEntity, "unknown_parent", detail)
	p.Pointer = parentThreadPointer
	return p
}

// parentThreadPointer is the JSON pointer to perdure.parentThreadId in an input.
const parentThreadPointer = "/forwardedProps/perdure/parentThreadId"
