package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
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
	if _, err := s.threads.Fork(ctx, parent, "", in.run.Thread); err != nil {
		return 0, err
	}
	return s.Log.LastOf(ctx, in.run.Thread)
}

// continuedFork returns the path of the step of the pipeline after which the first run of a fork
// begins, and the last message of a user, which the pipeline works on. after is "" if the run
// begins at the first step: the fork does not follow a step, the input adds or removes messages, or
// the agent is another one or lacks the step.
func continuedFork(thread loadedThread, accepted stream.Acceptance) (after string, task *agui.Message) {
	o := thread.Origin
	if o == nil || o.After == "" || len(thread.Runs) > 0 || thread.agent.Name != o.Agent || len(accepted.Tail) > 0 || accepted.Keep < len(thread.Entries) ||
		!pipeline.HasStepAt(thread.agent.Definition, o.After) {
		return "", nil
	}
	for _, e := range slices.Backward(thread.Entries) {
		if e.Message.Role == agui.RoleUser && e.Message.SubagentRunID == "" && !e.Hidden() {
			return o.After, &e.Message
		}
	}
	return o.After, nil
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
