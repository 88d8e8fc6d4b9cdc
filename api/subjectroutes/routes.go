package subjectroutes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/deletion"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

const (
	// pageSize is how many threads, or schedules, a request reads at a time.
	pageSize = 20
	// requestTime is how long a request works before it answers with a cursor. The deletion of one
	// page of threads may exceed it.
	requestTime = 20 * time.Second
)

// Routes deletes and exports subjects. Sessions, Schedules, Scheduler, Audit and Files may be nil: then
// there are none. It has no state of its own, and is safe for concurrent use.
type Routes struct {
	problem.Writer

	Access    *access.Guard
	Log       *stream.Log
	Snapshots *snapshot.Store
	Index     *threads.Index
	Deletion  *deletion.Threads
	Sessions  *sessions.Sessions
	Schedules *schedules.Store
	Scheduler *schedules.Scheduler
	Audit     *store.Log
	Files     *attachments.Attachments
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.DELETE("/subjects/:subject", r.Handle(r.deleteSubject))
	v1.GET("/subjects/:subject/export", r.Handle(r.exportSubject))
}

// work is the deletion of one subject by one request.
type work struct {
	*Routes

	tenant, subject string
	report          report
}

// deleteSubject serves DELETE /v1/subjects/{subject}: it deletes what the caller's tenant stores
// about a subject, and answers 200 with a report. It may be repeated, also after a failure: it
// deletes what is left. With a nextCursor in the report, a request with that cursor continues.
// dryRun=true reports without deletion. Errors: 400 invalid_input, 400 invalid_cursor, 403.
func (r *Routes) deleteSubject(c *gin.Context) error {
	ctx := c.Request.Context()
	w := &work{Routes: r, tenant: request.Caller(ctx).Tenant, subject: request.Segment(c, "subject")}
	if err := r.Access.CheckTenant(ctx, policy.DeleteSubject); err != nil {
		return err
	}
	if err := request.CheckSubject(w.subject); err != nil {
		return err
	}
	isDryRun, err := request.Flag(c, "dryRun", false)
	if err != nil {
		return err
	}
	w.report = report{
		Subject: w.subject, DryRun: isDryRun,
		Deleted: deleted{Threads: []string{}, Completed: []string{}, Schedules: []string{}, Shares: []string{}, Files: []string{}, Uploads: []string{}},
		Kept: []kept{
			{Kind: "auditEntries", Reason: "entries of the audit log stay until their time to live ends"},
			{Kind: "links", Reason: "links are signed and not stored: they expire, and those of deleted threads are invalid"},
		},
	}
	auditing.Detail(ctx, "subject", w.subject)
	if isDryRun {
		auditing.Detail(ctx, "dryRun", "true")
	}
	cursor := c.Query("cursor")
	if cursor == "" {
		for _, step := range []func(context.Context) error{w.endSessions, w.deleteSchedules, w.deleteUploads, w.deleteFiles, w.completeDeletions} {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	if err := w.walkThreads(ctx, cursor); err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, w.report)
}

// keep adds something that stays to the report.
func (w *work) keep(kind, id, reason string) {
	w.report.Kept = append(w.report.Kept, kept{kind, id, reason})
}

// endSessions ends the sessions of the subject's browsers.
func (w *work) endSessions(ctx context.Context) (err error) {
	if w.Sessions != nil {
		w.report.Deleted.Sessions, err = w.Sessions.EndSubject(ctx, w.tenant, w.subject, w.report.DryRun)
	}
	return err
}

// deleteSchedules deletes the schedules that the subject owns. A schedule of another owner stays.
func (w *work) deleteSchedules(ctx context.Context) error {
	return w.eachSchedule(ctx, w.tenant, w.subject, func(s *schedules.Stored, isOwner bool) error {
		if isOwner {
			return w.deleteSchedule(ctx, s.ID)
		}
		w.keep("schedule", s.ID, "the schedule has another owner; its runs act as the subject until another caller changes it")
		return nil
	})
}

// deleteSchedule deletes a schedule, in Temporal first: it must not fire without a definition.
func (w *work) deleteSchedule(ctx context.Context, id string) error {
	w.report.Deleted.Schedules = append(w.report.Deleted.Schedules, id)
	if w.report.DryRun {
		return nil
	}
	if err := w.Scheduler.Delete(ctx, w.tenant, id); err != nil && !errors.Is(err, schedules.ErrUnknown) {
		return err
	}
	return w.Schedules.Delete(ctx, w.tenant, id)
}

// completeDeletions completes deletions of threads of the tenant that were interrupted, for instance
// those of an earlier request whose process has died.
func (w *work) completeDeletions(ctx context.Context) error {
	for _, t := range w.Index.Unfinished() {
		if t.Tenant != w.tenant {
			continue
		}
		w.report.Deleted.Completed = append(w.report.Deleted.Completed, t.ID)
		if w.report.DryRun {
			continue
		}
		if err := w.Deletion.Finish(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// walkThreads goes through the threads of the tenant from a cursor on, until the end or until
// requestTime is over.
func (w *work) walkThreads(ctx context.Context, cursor string) (err error) {
	deadline := time.Now().Add(requestTime)
	isDue := func() bool { return time.Now().After(deadline) }
	w.report.NextCursor, err = w.eachThread(w.tenant, cursor, isDue, func(thread stream.Thread, listed threads.Thread) error {
		if listed.Owner == w.subject {
			return w.deleteThread(ctx, thread)
		}
		return w.leaveThread(ctx, thread)
	})
	return err
}

// deleteThread deletes a thread of the subject, with an entry of its own in the audit log. Its active
// run is cancelled first. A thread with a legal hold stays.
func (w *work) deleteThread(ctx context.Context, thread stream.Thread) error {
	err := w.Deletion.CheckHold(ctx, thread)
	if isHeld(err) {
		w.keep("thread", thread.ID, "the thread has a legal hold, or its tenant has one")
		return nil
	}
	if err != nil {
		return err
	}
	w.report.Deleted.Threads = append(w.report.Deleted.Threads, thread.ID)
	if w.report.DryRun {
		return nil
	}
	snap, err := w.Snapshots.Latest(ctx, thread, 0)
	if err == nil {
		err = w.Deletion.Delete(ctx, thread, snap)
	}
	auditing.Also(ctx, audit.DeleteThread, func(e *audit.Entry) {
		e.Thread, e.Details = thread.ID, map[string]string{"subject": w.subject}
	}, err)
	return err
}

// isHeld reports whether an error of CheckHold tells that a thread has a legal hold.
func isHeld(err error) bool { return err != nil && problem.Of(err).Code == problem.CodeLegalHold }

// leaveThread removes the shares of a thread of another owner that name the subject. What the subject
// has contributed to the thread stays.
func (w *work) leaveThread(ctx context.Context, thread stream.Thread) error {
	names := func(s stream.Share) bool { return s.Subject == w.subject }
	access, err := w.accessTo(ctx, thread)
	if errors.Is(err, stream.ErrGone) { // the thread is being deleted
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(access.Shares, names) {
		w.report.Deleted.Shares = append(w.report.Deleted.Shares, thread.ID)
		if !w.report.DryRun {
			change := func(shares []stream.Share) []stream.Share { return slices.DeleteFunc(slices.Clone(shares), names) }
			if _, err := w.Log.ChangeShares(ctx, thread, change); err != nil && !errors.Is(err, stream.ErrNotListed) {
				return err
			}
		}
	}
	snap, err := w.Snapshots.Latest(ctx, thread, 0)
	if errors.Is(err, stream.ErrGone) { // the thread is being deleted
		return nil
	}
	if err != nil {
		return err
	}
	if isContributor(snap, w.subject) {
		w.keep("contribution", thread.ID, "the thread belongs to another owner")
	}
	return nil
}
