package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// subjectReport is the report of the deletion of a subject.
type subjectReport struct {
	DryRun     bool
	NextCursor string
	Deleted    struct {
		Threads, Completed, Schedules, Shares []string
		Sessions                              int
	}
	Kept []struct{ Kind, ID, Reason string }
}

// has reports whether the report has kept something of a kind.
func (r *subjectReport) has(kind, id string) bool {
	return slices.ContainsFunc(r.Kept, func(k struct{ Kind, ID, Reason string }) bool { return k.Kind == kind && k.ID == id && k.Reason != "" })
}

// subjectNode is a node with threads of ann and bob.
type subjectNode struct {
	*node

	cfg api.Config
}

// setupSubjects starts a node on which ann has the threads first, second and held and a schedule, and
// has written into bob's thread, which bob shares with her.
func setupSubjects(t *testing.T) *subjectNode {
	t.Helper()
	n := &subjectNode{}
	n.node = setup(t, withThreadList(t), withAudit(t), func(c *api.Config) {
		c.Auth = byHeader
		n.cfg = *c
	})
	n.temporal.stop = func(string) error { return serviceerror.NewNotFound("closed") }
	n.answerRuns()
	ann, bob := headersOf("ann"), headersOf("bob")
	for _, thread := range []string{"first", "second", "held"} {
		n.postTo(thread, "run-"+thread, ann)
	}
	n.postTo("bobs", "run-bob", bob)
	n.do(http.MethodPut, "/v1/threads/bobs/shares", `{"shares":[{"subject":"ann","access":"run"},{"role":"r","access":"read"}]}`, bob...).mustStatus(t, "share", http.StatusOK)
	// The API checks shares by its index of threads, which learns of them after the log has them.
	for changed := n.cfg.Threads.Changed(); ; changed = n.cfg.Threads.Changed() {
		if known, ok := n.cfg.Threads.AccessTo(stream.Thread{Tenant: "alpha", ID: "bobs"}); ok && len(known.Decode().Shares) == 2 {
			break
		}
		<-changed
	}
	n.postTo("bobs", "run-ann", ann)
	n.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil), ann...).mustStatus(t, "schedule", http.StatusCreated)
	n.do(http.MethodPut, "/v1/threads/held/hold", `{"reason":"case 7"}`, admin...).mustStatus(t, "hold", http.StatusOK)
	return n
}

// postTo runs an input on a thread as a caller.
func (n *subjectNode) postTo(thread, run string, caller []string) {
	n.t.Helper()
	in := inputOf(run, "said in "+run)
	in.ThreadID, in.ForwardedProps, in.State = thread, json.RawMessage(`{"perdure":{"history":"append"}}`), json.RawMessage(`{"from":"`+run+`"}`)
	n.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(n.t, in), caller...).mustStatus(n.t, run, http.StatusOK)
}

// deleteSubject deletes ann, and returns the report.
func (n *subjectNode) deleteSubject(query string) *subjectReport {
	n.t.Helper()
	a := n.do(http.MethodDelete, "/v1/subjects/ann"+query, "", admin...)
	a.mustStatus(n.t, "deletion of ann", http.StatusOK)
	r := new(subjectReport)
	if err := json.Unmarshal([]byte(a.body), r); err != nil {
		n.t.Fatal(err)
	}
	slices.Sort(r.Deleted.Threads)
	return r
}

// TestSubjectIsDeleted: the deletion of a subject removes its threads, schedules and shares, and
// reports what stays and why. A dry run removes nothing. A repetition finds nothing more.
func TestSubjectIsDeleted(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	check := func(what string, r *subjectReport, threads string) {
		t.Helper()
		if got := fmt.Sprint(r.Deleted.Threads); got != threads {
			t.Errorf("%s: deleted threads %s, want %s", what, got, threads)
		}
		if !r.has("thread", "held") || !r.has("contribution", "bobs") || !r.has("auditEntries", "") || r.NextCursor != "" {
			t.Errorf("%s: kept %v with the cursor %q, want the held thread, the contribution and audit entries", what, r.Kept, r.NextCursor)
		}
	}
	for range 2 {
		r := n.deleteSubject("?dryRun=true")
		check("dry run", r, "[first second]")
		if !r.DryRun || len(r.Deleted.Schedules) != 1 || fmt.Sprint(r.Deleted.Shares) != "[bobs]" {
			t.Errorf("dry run: got %+v, want one schedule and the share of bobs", r.Deleted)
		}
	}
	r := n.deleteSubject("")
	check("deletion", r, "[first second]")
	if len(r.Deleted.Schedules) != 1 || fmt.Sprint(r.Deleted.Shares) != "[bobs]" {
		t.Errorf("deletion: got %+v, want one schedule and the share of bobs", r.Deleted)
	}
	for _, thread := range []string{"first", "second"} {
		n.do(http.MethodGet, "/v1/threads/"+thread, "", admin...).mustStatus(t, thread, http.StatusNotFound)
	}
	n.do(http.MethodGet, "/v1/threads/held", "", admin...).mustStatus(t, "the held thread", http.StatusOK)
	if left, _, err := n.cfg.Schedules.List(n.ctx(), "alpha", "", 10); len(left) != 0 || err != nil {
		t.Errorf("%d schedules are left (%v), want 0", len(left), err)
	}
	access, err := n.log.AccessOf(n.ctx(), stream.Thread{Tenant: "alpha", ID: "bobs"})
	if err != nil || len(access.Shares) != 1 || access.Shares[0].Role != "r" {
		t.Errorf("bob's thread has the shares %v (%v), want only that of the role", access, err)
	}
	if got := n.entries("?action=thread.delete&outcome=accepted", admin); len(got) != 2 || got[0].Details["subject"] != "ann" {
		t.Errorf("the audit log has %s, want the two deletions for ann", inWords(got))
	}
	if got := n.entries("?action=subject.delete", admin); len(got) != 3 || got[2].Details["subject"] != "ann" {
		t.Errorf("the audit log has %s, want three requests about ann", inWords(got))
	}
}

// TestSubjectDeletionCompletesInterruptedOne: a deletion that died between the entry of the index and
// the records is completed by the next one.
func TestSubjectDeletionCompletesInterruptedOne(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	thread := stream.Thread{Tenant: "alpha", ID: "first"}
	last, err := n.log.LastOf(n.ctx(), thread)
	if err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf(`{"threadId":"first","seq":%d,"purged":true,"unfinished":true}`, last) // what a killed process leaves
	if _, err := n.log.Index().PutString(n.ctx(), stream.IndexPrefix+"alpha.first", left); err != nil {
		t.Fatal(err)
	}
	for changed := n.cfg.Threads.Changed(); len(n.cfg.Threads.Unfinished()) != 1; changed = n.cfg.Threads.Changed() {
		select {
		case <-changed:
		case <-n.ctx().Done():
			t.Fatal("the index does not list the interrupted deletion")
		}
	}
	r := n.deleteSubject("")
	if fmt.Sprint(r.Deleted.Completed, r.Deleted.Threads) != "[first] [second]" {
		t.Errorf("got %+v, want first completed and second deleted", r.Deleted)
	}
	if last, err := n.log.LastOf(n.ctx(), thread); last != 0 || err != nil {
		t.Errorf("the log has the record %d of the thread (%v), want none", last, err)
	}
}

// TestSubjectDeletionIsForAdministrators: only administrators of the tenant delete a subject, and only
// of their tenant.
func TestSubjectDeletionIsForAdministrators(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	if a := n.do(http.MethodDelete, "/v1/subjects/ann?dryRun=true", "", headersOf("ann")...); a.status != http.StatusForbidden {
		t.Errorf("the subject itself: got %d, want 403", a.status)
	}
	for query, pointer := range map[string]string{"/v1/subjects/ann?dryRun=yes": "", "/v1/subjects/ann?dryRun": "", "/v1/subjects/ann?dryRun=": "", "/v1/subjects/a%00b": "/subject"} {
		if a := n.do(http.MethodDelete, query, "", admin...); a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("%s: got %d with the pointer %q, want 400 with %q", query, a.status, a.problem.Pointer, pointer)
		}
	}
	other := []string{"X-Tenant", "globex", "X-User", "root", "X-Roles", policy.DefaultRoles.TenantAdmin}
	a := n.do(http.MethodDelete, "/v1/subjects/ann", "", other...)
	a.mustStatus(t, "another tenant", http.StatusOK)
	var r subjectReport
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || len(r.Deleted.Threads) > 0 || r.has("contribution", "bobs") {
		t.Errorf("another tenant sees %s (%v)", a.body, err)
	}
}

// exportLine is a line of an export.
type exportLine struct {
	Kind, ThreadID, SupersededBy, Access, ApprovalID, Subject, SHA256 string
	Message                                                           struct{ Content, Role string }
	State                                                             json.RawMessage
	Schedule                                                          struct{ ID string }
	Decision                                                          struct{ By, Decision string }
	Entry                                                             struct{ Actor struct{ Subject string } }
	Counts                                                            map[string]int
}

// exportOf returns the lines of an export, after it has checked their manifest.
func (n *subjectNode) exportOf(subject string, caller []string) []exportLine {
	n.t.Helper()
	a := n.do(http.MethodGet, "/v1/subjects/"+subject+"/export", "", caller...)
	a.mustStatus(n.t, "export", http.StatusOK)
	var lines []exportLine
	digest, counts := sha256.New(), map[string]int{}
	for raw := range strings.Lines(a.body) {
		var l exportLine
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			n.t.Fatal(err)
		}
		lines = append(lines, l)
		if l.Kind == "manifest" {
			break
		}
		digest.Write([]byte(raw))
		counts[l.Kind]++
	}
	end := lines[len(lines)-1]
	if end.Kind != "manifest" || end.Subject != subject || end.SHA256 != hex.EncodeToString(digest.Sum(nil)) || !maps.Equal(end.Counts, counts) {
		n.t.Errorf("last line = %+v, want the manifest of %v", end, counts)
	}
	return lines
}

// TestSubjectIsExported: the export has the threads, shares, schedules and audit entries of a subject
// and what it has sent to threads of others, and nothing that others have sent there. The subject
// gets the same as an administrator.
func TestSubjectIsExported(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	for name, caller := range map[string][]string{"administrator": admin, "subject": headersOf("ann")} {
		var got []string
		for _, l := range n.exportOf("ann", caller) {
			switch l.Kind {
			case "thread", "state":
				got = append(got, l.Kind+" "+l.ThreadID)
			case "message":
				if l.Message.Role == "user" {
					got = append(got, "message "+l.ThreadID+": "+l.Message.Content)
				}
			case "contribution":
				got = append(got, "contribution "+l.ThreadID+": "+l.Message.Content+string(l.State))
			case "share":
				got = append(got, "share "+l.ThreadID+" "+l.Access)
			case "schedule":
				got = append(got, "schedule "+l.Schedule.ID)
			case "auditEntry":
				if l.Entry.Actor.Subject != "ann" {
					t.Errorf("%s: got an entry of %q, want only those of ann", name, l.Entry.Actor.Subject)
				}
			}
		}
		want := []string{"contribution bobs: said in run-ann", `contribution bobs: {"from":"run-ann"}`, "schedule s", "share bobs run"}
		for _, thread := range []string{"first", "held", "second"} {
			want = append(want, "message "+thread+": said in run-"+thread, "state "+thread, "thread "+thread)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := n.entries("?action=subject.export", admin); len(got) != 2 || got[0].Details["subject"] != "ann" {
		t.Errorf("the audit log has %s, want the two exports of ann", inWords(got))
	}
}

// TestExportHasDecisionsAndSupersededMessages: the export has decisions and votes of the subject in
// threads of others, without those of other approvers, and messages that an edit has removed.
func TestExportHasDecisionsAndSupersededMessages(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	run := stream.Run{Thread: stream.Thread{Tenant: "alpha", ID: "bobs"}, ID: "run-bob"}
	votes := []inbox.Decision{{Decision: "approve", By: "bob", Digest: "1"}, {Decision: "reject", By: "ann", Digest: "2"}}
	for i, what := range []inbox.EventType{inbox.Voted, inbox.Decided} {
		entry := inbox.Entry{Event: inbox.Event{Type: what, Approval: inbox.Approval{ID: "int", ThreadID: "bobs", RunID: run.ID, Voting: inbox.Voting{Decisions: votes[:i+1]}}}}
		if err := n.log.AppendAudit(n.ctx(), run, fmt.Sprint("evt", i), entry); err != nil {
			t.Fatal(err)
		}
	}
	edit := inputOf("run-edit", "")
	edit.ThreadID, edit.Messages = "first", []agui.Message{userMessage("u-run-first", "said instead")}
	n.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, edit), headersOf("ann")...).mustStatus(t, "edit", http.StatusOK)
	var got []string
	for _, l := range n.exportOf("ann", admin) {
		switch {
		case l.Kind == "decision":
			got = append(got, l.ThreadID+" "+l.ApprovalID+" "+l.Decision.By+" "+l.Decision.Decision)
		case l.Kind == "message" && l.ThreadID == "first" && l.Message.Role == "user":
			got = append(got, l.Message.Content+", superseded by "+l.SupersededBy)
		}
	}
	slices.Sort(got)
	if want := []string{"bobs int ann reject", "said in run-first, superseded by run-edit", "said instead, superseded by "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestExportIsForAdministratorsAndSubject: other callers do not export a subject, and another tenant
// has nothing about it.
func TestExportIsForAdministratorsAndSubject(t *testing.T) {
	t.Parallel()
	n := setupSubjects(t)
	if a := n.do(http.MethodGet, "/v1/subjects/ann/export", "", headersOf("bob")...); a.status != http.StatusForbidden {
		t.Errorf("another subject: got %d, want 403", a.status)
	}
	for _, other := range [][]string{
		{"X-Tenant", "globex", "X-User", "root", "X-Roles", policy.DefaultRoles.TenantAdmin}, {"X-Tenant", "globex", "X-User", "ann"},
	} {
		for _, l := range n.exportOf("ann", other) {
			if l.Kind != "manifest" && l.Kind != "auditEntry" {
				t.Errorf("another tenant gets %+v", l)
			}
		}
	}
}
