package tools

import "context"

// Run is the run that a call belongs to, and for whom it acts. All strings come from authenticated
// requests and from definitions, never from a model.
type Run struct {
	// Tenant owns the thread. Subjects are unique only within a tenant.
	Tenant string
	// Requester is the subject that sent the first input of the run, or created its schedule; "" =
	// an anonymous caller. An approver does not become the requester.
	Requester string
	// Contributors are the subjects whose content models of the thread have received, each once,
	// with the requester; "" = an anonymous caller. Any of them may have caused the call.
	Contributors []string
	// Thread and ID are the IDs of the thread and the run that clients use. Agent is the name of
	// the agent that makes the call, which can be a subagent.
	Thread, ID, Agent string
}

// runKey is the context key of a Run.
type runKey struct{}

// RunOf returns the run of the call that ctx belongs to. It returns false outside of a call.
// Functions of [Func] use it instead of Call.Run.
func RunOf(ctx context.Context) (Run, bool) {
	run, ok := ctx.Value(runKey{}).(Run)
	return run, ok
}
