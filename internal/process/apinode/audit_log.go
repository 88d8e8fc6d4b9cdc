package apinode

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/stream"
)

// auditLog is the audit log of a node. openAudit opens it; the caller closes the writer, when no
// request is active.
type auditLog struct {
	auditroutes.Audit

	logger *slog.Logger
}

// openAudit opens the audit log, and records the policies of the node.
func openAudit(ctx context.Context, l *stream.Log, policies *policy.Engine, logger *slog.Logger) (*auditLog, error) {
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
		Audit:  auditroutes.Audit{Log: log, Writer: writer, Holds: holds},
		logger: logger,
	}, nil
}

// observed is a file of the configuration whose contents change while the node runs.
type observed interface {
	Observe(observer func(filewatch.Change))
}

// recordTimeout bounds the writing of an entry about a file.
const recordTimeout = 10 * time.Second

// observe records the content of a file that is in use, and each later one, until the log is closed. The
// entries have names and a digest, never the content. An entry that cannot be written is logged: the
// content is in use already.
func (l *auditLog) observe(action audit.Action, file observed) {
	file.Observe(func(c filewatch.Change) {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		e := audit.Entry{Action: action, Outcome: audit.Accepted, Details: map[string]string{"digest": c.Digest}}
		for detail, names := range map[string][]string{"added": c.Added, "removed": c.Removed, "changed": c.Changed} {
			if len(names) > 0 {
				e.Details[detail] = audit.Cut(strings.Join(names, ", "))
			}
		}
		if err := l.Writer.Record(ctx, store.Platform, e); err != nil && !errors.Is(err, store.ErrClosed) {
			l.logger.ErrorContext(ctx, "the audit log has no entry about a file that has changed", "action", action, "digest", c.Digest, "error", err)
		}
	})
}
