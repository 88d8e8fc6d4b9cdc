package subjectroutes

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// eachSchedule calls do for each schedule of a tenant that a subject owns, or has changed last.
func (r *Routes) eachSchedule(ctx context.Context, tenant, subject string, do func(s *schedules.Stored, isOwner bool) error) error {
	if r.Schedules == nil {
		return nil
	}
	for after := ""; ; {
		page, next, err := r.Schedules.List(ctx, tenant, after, pageSize)
		if err != nil {
			return err
		}
		for _, s := range page {
			isOwner := s.Owner != nil && s.Owner.Subject == subject
			if !isOwner && (s.Requester == nil || s.Requester.Subject != subject) {
				continue
			}
			if err := do(s, isOwner); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

// eachThread calls do for the threads of a tenant from a cursor on, the oldest first, until the end,
// or until isDue returns true after a page: then it returns the next cursor. A thread that is
// updated meanwhile comes again.
func (r *Routes) eachThread(tenant, cursor string, isDue func() bool, do func(stream.Thread, threads.Thread) error) (next string, err error) {
	for {
		page, next, err := r.Index.Oldest(tenant, cursor, pageSize)
		if err != nil {
			return "", err
		}
		for _, t := range page {
			if err := do(stream.Thread{Tenant: tenant, ID: t.ThreadID}, t); err != nil {
				return "", err
			}
		}
		if cursor = next; cursor == "" || isDue() {
			return cursor, nil
		}
	}
}

// accessTo returns the owner and the shares of a thread; without a thread they are empty.
func (r *Routes) accessTo(ctx context.Context, thread stream.Thread) (stream.Access, error) {
	if known, ok := r.Index.AccessTo(thread); ok {
		return known.Decode(), nil
	}
	access, err := r.Log.AccessOf(ctx, thread) // the index learns of a new thread after the log has it
	if access == nil || err != nil {
		return stream.Access{}, err
	}
	return *access, nil
}

// isContributor reports whether a thread may have content of a subject.
func isContributor(snap *snapshot.Snapshot, subject string) bool {
	return slices.ContainsFunc(snap.Contributors, func(c snapshot.Contributor) bool { return c.Principal != nil && c.Principal.Subject == subject })
}
