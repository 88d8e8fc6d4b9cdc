package apinode

import (
	"context"
	"log/slog"
	"time"

	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// auditLog is the audit log of a node. openAudit opens it; close ends it.
type auditLog struct {
	auditroutes.Audit

	retention *store.Retention
}

// openAudit opens the audit log, and records the policies of the node.
func openAudit(ctx context.Context, l *stream.Log, policies *policy.Engine, retention time.Duration, logger *slog.Logger) (*auditLog, error) {
	log, err := store.Open(ctx, l)
	if err != nil {
		return nil, err
	}
	holds, err := store.OpenHolds(ctx, l)
	if err != nil {
		return nil, err
	}
	writer, err := store.NewWriter(log)
	if err != nil {
		return nil, err
	}
	loaded := audit.Entry{Action: audit.LoadPolicies, Outcome: audit.Accepted, Details: map[string]string{"digest": policies.Digest()}}
	if err := writer.Record(ctx, store.Platform, loaded); err != nil {
		writer.Close()
		return nil, err
	}
	return &auditLog{
		Audit:     auditroutes.Audit{Log: log, Writer: writer, Holds: holds},
		retention: store.BeginRetention(writer, holds, retention, logger),
	}, nil
}

// close ends the audit log. No request may be active.
func (l *auditLog) close() {
	l.retention.Stop()
	l.Writer.Close()
}
