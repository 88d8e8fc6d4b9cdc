package api

import (
	"context"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/sessions"
)

// auditDecisions records the decisions in an accepted input in the audit log, one entry each.
func (s *Server) auditDecisions(ctx context.Context, in *preparedInput) {
	for _, entry := range in.resume {
		auditing.Also(ctx, audit.DecideInterrupt, func(further *audit.Entry) {
			further.Target = audit.Target{Thread: in.run.Thread.ID, Run: in.run.ID, Agent: in.agent.Name, Approval: audit.Cut(entry.InterruptID)}
			further.Details = map[string]string{"decision": string(entry.Status)}
		}, nil)
	}
}

// observeSessions records sign-ins of browsers, and ends of their sessions, in the audit log.
func (s *Server) observeSessions(ctx context.Context, e sessions.Event) {
	if e.Ended == "" {
		s.recorder.Report(ctx, e.Principal, audit.BeginSession, nil)
	} else {
		s.recorder.Report(ctx, e.Principal, audit.EndSession, map[string]string{"reason": string(e.Ended)})
	}
}
