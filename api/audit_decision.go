package api

import (
	"context"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/internal/audit"
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
