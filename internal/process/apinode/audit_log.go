package apinode

import (
	"context"

	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// openAudit opens the audit log, and records the policies of the node. The caller closes the writer,
// when no request is active.
func openAudit(ctx context.Context, l *stream.Log, policies *policy.Engine) (*auditroutes.Audit, error) {
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
	return &auditroutes.Audit{Log: log, Writer: writer, Holds: holds}, nil
}
