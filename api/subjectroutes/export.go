package subjectroutes

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

const (
	// exportTime bounds an export. One that takes longer is cut.
	exportTime = time.Hour
	// progressInterval is how long an export sends nothing while it searches. It is below the idle
	// timeouts of clients and proxies.
	progressInterval = 10 * time.Second
	// exportBuffer is how much is gathered before it is sent, in bytes.
	exportBuffer = 16 << 10
	// auditPageSize is how many entries of the audit log are read at a time.
	auditPageSize = 500
)

// Kinds of lines.
const (
	kindThread       = "thread"
	kindMessage      = "message"
	kindState        = "state"
	kindContribution = "contribution"
	kindDecision     = "decision"
	kindShare        = "share"
	kindSchedule     = "schedule"
	kindSession      = "session"
	kindFile         = "file"
	kindAuditEntry   = "auditEntry"
	kindProgress     = "progress"
	kindManifest     = "manifest"
)

// line is one line of an export. Kind tells which other members it has.
type line struct {
	Kind     string `json:"kind"`
	ThreadID string `json:"threadId,omitempty"`
	// Thread has the metadata of a thread of the subject.
	Thread *exportedThread `json:"thread,omitempty"`
	// Message is a message of a thread of the subject, or one that the subject has sent to a thread
	// of another owner (contribution).
	Message *agui.Message `json:"message,omitempty"`
	// SupersededBy is the run whose input removed the message from the conversation; "" = the
	// conversation has it.
	SupersededBy string `json:"supersededBy,omitempty"`
	// SentAt is the time of a contribution.
	SentAt time.Time `json:"sentAt,omitzero"`
	// State is the state of a thread of the subject, or one that the subject has sent to a thread of
	// another owner (contribution).
	State json.RawMessage `json:"state,omitempty"`
	// Access is that of a share that names the subject.
	Access     stream.AccessLevel `json:"access,omitempty"`
	ApprovalID string             `json:"approvalId,omitempty"`
	ToolName   string             `json:"toolName,omitempty"`
	Decision   *inbox.Decision    `json:"decision,omitempty"`
	Schedule   *schedules.Stored  `json:"schedule,omitempty"`
	Session    *sessions.Summary  `json:"session,omitempty"`
	File       *exportedFile      `json:"file,omitempty"`
	Entry      json.RawMessage    `json:"entry,omitempty"`
	*manifest
}

// exportedThread is the metadata of a thread.
type exportedThread struct {
	threads.Thread
	Usage      []agui.TokenUsage `json:"usage,omitempty"`
	Shares     []stream.Share    `json:"shares,omitempty"`
	ForkedFrom string            `json:"forkedFrom,omitempty"`
}

// manifest is the last line of an export. An export without it was cut.
type manifest struct {
	Subject    string    `json:"subject"`
	ExportedAt time.Time `json:"exportedAt"`
	// Counts are the numbers of lines by kind.
	Counts map[string]int `json:"counts"`
	// SHA256 is the digest of all bytes before the line, in hex.
	SHA256 string `json:"sha256"`
}

// export is the export of one subject by one request.
type export struct {
	*Routes

	c               *gin.Context
	tenant, subject string
	out             *bufio.Writer
	digest          hash.Hash
	counts          map[string]int
	exported        map[string]bool // IDs of threads that have lines
	sentAt          time.Time       // of the last flush
}

// exportSubject serves GET /v1/subjects/{subject}/export: what the caller's tenant stores about a
// subject, as lines of JSON. The last line is a manifest. Errors: 400 invalid_input, 403. After the
// first bytes an error ends the answer without a manifest.
func (r *Routes) exportSubject(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), exportTime)
	defer cancel()
	e := &export{
		Routes: r, c: c, tenant: request.Caller(ctx).Tenant, subject: request.Segment(c, "subject"), out: bufio.NewWriterSize(c.Writer, exportBuffer),
		digest: sha256.New(), counts: map[string]int{}, exported: map[string]bool{}, sentAt: time.Now(),
	}
	if err := request.CheckSubject(e.subject); err != nil {
		return err
	}
	if err := r.Access.CheckSubject(ctx, e.subject); err != nil {
		return err
	}
	auditing.Detail(ctx, "subject", e.subject)
	c.Header("Content-Type", "application/x-ndjson")
	c.Status(http.StatusOK)
	err := e.write(ctx)
	if err != nil && !c.Writer.Written() {
		c.Writer.Header().Del("Content-Type")
		return err
	}
	if err != nil {
		_ = c.Error(err)
	}
	return nil
}

// write writes all lines.
func (e *export) write(ctx context.Context) error {
	exportedAt := time.Now().UTC()
	err := e.eachSchedule(ctx, e.tenant, e.subject, func(s *schedules.Stored, _ bool) error {
		return e.add(line{Kind: kindSchedule, Schedule: s})
	})
	if err == nil {
		err = e.addSessions()
	}
	if err == nil {
		err = e.addFiles(ctx)
	}
	if err != nil {
		return err
	}
	_, err = e.eachThread(e.tenant, "", func() bool { return false }, func(thread stream.Thread, listed threads.Thread) error {
		err := e.addThread(ctx, thread, listed)
		if errors.Is(err, stream.ErrGone) { // the thread was deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		return e.progress()
	})
	if err != nil {
		return err
	}
	if err := e.addAudit(ctx); err != nil {
		return err
	}
	m := &manifest{Subject: e.subject, ExportedAt: exportedAt, Counts: e.counts, SHA256: hex.EncodeToString(e.digest.Sum(nil))}
	if err := e.send(line{Kind: kindManifest, manifest: m}); err != nil {
		return err
	}
	return e.out.Flush()
}

// add adds a line, and counts it.
func (e *export) add(l line) error {
	e.counts[l.Kind]++
	return e.send(l)
}

// send writes a line at the pace of the client.
func (e *export) send(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("api: encode the export: %w", err)
	}
	if err := request.HoldAnswer(e.c, len(raw)); err != nil {
		return err
	}
	raw = append(raw, '\n')
	_, _ = e.digest.Write(raw)        // never fails
	if len(raw) > e.out.Available() { // the write sends what is gathered
		e.sentAt = time.Now()
	}
	_, err = e.out.Write(raw)
	return err
}

// progress sends what is gathered if nothing was sent for progressInterval, with a line that tells
// the client that the search continues.
func (e *export) progress() error {
	if time.Since(e.sentAt) < progressInterval {
		return nil
	}
	e.sentAt = time.Now()
	if err := e.add(line{Kind: kindProgress}); err != nil {
		return err
	}
	err := e.out.Flush()
	e.c.Writer.Flush()
	return err
}

// addSessions adds the sessions of the subject's browsers that have not ended.
func (e *export) addSessions() error {
	if e.Sessions == nil {
		return nil
	}
	for _, s := range e.Sessions.OfSubject(e.tenant, e.subject) {
		if err := e.add(line{Kind: kindSession, Session: &s}); err != nil {
			return err
		}
	}
	return nil
}

// addThread adds a thread of the subject, or what the subject has contributed to one of another
// owner. A thread that was added before is left out.
func (e *export) addThread(ctx context.Context, thread stream.Thread, listed threads.Thread) error {
	if e.exported[thread.ID] {
		return nil
	}
	snap, err := e.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return err
	}
	access, err := e.accessTo(ctx, thread)
	if err != nil {
		return err
	}
	if listed.Owner == e.subject {
		err = e.addOwned(ctx, thread, listed, snap, access)
	} else {
		err = e.addContributions(ctx, thread, snap, access)
	}
	if err != nil {
		return err
	}
	return e.addDecisions(ctx, thread)
}

// addOwned adds a thread of the subject with its messages and its state.
func (e *export) addOwned(ctx context.Context, thread stream.Thread, listed threads.Thread, snap *snapshot.Snapshot, access stream.Access) error {
	size := len(snap.State)
	for _, entry := range snap.Entries {
		size += entry.Weight()
	}
	if err := request.HoldAnswer(e.c, size); err != nil {
		return err
	}
	e.exported[thread.ID] = true
	t := &exportedThread{Thread: listed, Usage: snap.Usage, Shares: access.Shares}
	if snap.Origin != nil {
		t.ForkedFrom = snap.Origin.Thread
	}
	if err := e.add(line{Kind: kindThread, ThreadID: thread.ID, Thread: t}); err != nil {
		return err
	}
	if err := e.addMessages(thread, snap.Messages(), ""); err != nil {
		return err
	}
	for _, run := range snap.Runs {
		if run.Superseded == nil {
			continue
		}
		removed, err := e.Snapshots.SupersededBy(ctx, thread, run.Superseded)
		if err != nil {
			return err
		}
		if err := e.addMessages(thread, removed, stream.ShownRunID(run.ID)); err != nil {
			return err
		}
	}
	return e.add(line{Kind: kindState, ThreadID: thread.ID, State: snap.State})
}

// addMessages adds messages of a thread of the subject.
func (e *export) addMessages(thread stream.Thread, messages []agui.Message, supersededBy string) error {
	for i := range messages {
		if err := e.add(line{Kind: kindMessage, ThreadID: thread.ID, Message: &messages[i], SupersededBy: supersededBy}); err != nil {
			return err
		}
	}
	return nil
}

// addContributions adds the shares of a thread of another owner that name the subject, and the
// messages and states that the subject has sent to it.
func (e *export) addContributions(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, access stream.Access) error {
	for _, s := range access.Shares {
		if s.Subject != e.subject {
			continue
		}
		e.exported[thread.ID] = true
		if err := e.add(line{Kind: kindShare, ThreadID: thread.ID, Access: s.Access}); err != nil {
			return err
		}
	}
	if !isContributor(snap, e.subject) {
		return nil
	}
	e.exported[thread.ID] = true
	for sent, err := range e.Log.SentBy(ctx, thread, e.subject) {
		if err != nil {
			return err
		}
		if err := e.add(line{Kind: kindContribution, ThreadID: thread.ID, Message: sent.Message, State: sent.State, SentAt: sent.Time.UTC()}); err != nil {
			return err
		}
	}
	return nil
}

// addDecisions adds the decisions and votes of the subject about interrupts of a thread.
func (e *export) addDecisions(ctx context.Context, thread stream.Thread) error {
	history, err := inbox.ReadHistory(ctx, e.Log, thread)
	if err != nil {
		return err
	}
	for _, h := range history {
		for _, event := range h.Events {
			for _, d := range event.Decisions {
				if d.By != e.subject {
					continue
				}
				e.exported[thread.ID] = true
				if err := e.add(line{Kind: kindDecision, ThreadID: thread.ID, ApprovalID: h.ID, ToolName: h.ToolName, Decision: &d}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addAudit adds the entries of the audit log whose actor is the subject.
func (e *export) addAudit(ctx context.Context) error {
	if e.Audit == nil {
		return nil
	}
	for f := (store.Filter{Subject: e.subject}); ; {
		page, err := e.Audit.Page(ctx, store.OfTenant(e.tenant), f, auditPageSize)
		if err != nil {
			return err
		}
		for _, raw := range page.Entries {
			if err := e.add(line{Kind: kindAuditEntry, Entry: raw}); err != nil {
				return err
			}
		}
		if err := e.progress(); err != nil {
			return err
		}
		if f.After = page.Next; f.After == 0 {
			return nil
		}
	}
}
