package operations

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSubjectDeletionSurvivesKill: a process is killed in the middle of the deletion of a subject.
// The same command then deletes what is left, threads in the middle of their deletion included, and
// an export has no thread. The thread of another owner stays.
func TestSubjectDeletionSurvivesKill(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	perdure := func(args ...string) string { return p.StartCommand(t, args...).Finish(t, 0) }
	other := kit.NewThread()
	perdure("run", "demo", "What is 12*7?", "--thread", other, "--subject", "bob")
	var threads []string
	for range 16 {
		in := kit.NewInput("What is 12*7?")
		kit.WantEvents(t, p.RequestAs(t, "", http.MethodPost, kit.AssistantPath, in, "X-Forwarded-User", "ann")) //nolint:bodyclose // WantEvents closes it
		threads = append(threads, in.ThreadID)
	}
	if export := perdure("subjects", "export", "ann", "--subject", "ann"); strings.Count(export, `"kind":"thread"`) != len(threads) {
		t.Errorf("export before the deletion:\n%s\nwant %d threads", export, len(threads))
	}

	deletion := p.StartCommand(t, "subjects", "delete", "ann")
	// A thread leaves the list before its records are removed. A read of the thread itself could
	// wait for the rest of the deletion.
	for listed := len(threads); listed == len(threads); {
		var list struct{ Threads []json.RawMessage }
		if err := json.NewDecoder(p.RequestAs(t, "", http.MethodGet, "/v1/threads?limit=100", nil, "X-Forwarded-User", "ann").Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		listed = len(list.Threads)
	}
	p.Kill()
	_ = deletion.Process.Kill() // it would repeat the request
	_ = deletion.Wait()
	p.Start(t)

	countLeft := func() int {
		var report struct {
			Deleted struct{ Threads, Completed []string }
		}
		if err := json.Unmarshal([]byte(perdure("subjects", "delete", "ann", "--dry-run", "--json")), &report); err != nil {
			t.Fatal(err)
		}
		return len(report.Deleted.Threads) + len(report.Deleted.Completed)
	}
	if left := countLeft(); left == 0 || left > len(threads) {
		t.Errorf("after the kill %d of %d threads are left, want some", left, len(threads))
	}
	perdure("subjects", "delete", "ann")
	if left := countLeft(); left != 0 {
		t.Errorf("after the repeated deletion %d threads are left, want 0", left)
	}
	for _, thread := range threads {
		if status := p.RequestAs(t, "", http.MethodGet, "/v1/threads/"+thread, nil).StatusCode; status != http.StatusNotFound {
			t.Errorf("thread %s: got %d, want 404", thread, status)
		}
	}
	if export := perdure("subjects", "export", "ann"); strings.Contains(export, "threadId") {
		t.Errorf("export after the deletion:\n%s\nwant no threads", export)
	}
	if status := p.RequestAs(t, "", http.MethodGet, "/v1/threads/"+other, nil).StatusCode; status != http.StatusOK {
		t.Errorf("thread of another owner: got %d, want 200", status)
	}
}
