package approvals

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// awayForNotices is an outage that delays the notifications of an interrupt beyond the end of the
// next run.
const awayForNotices = 40 * time.Second

// cautious is an agent whose approval expires soon.
const cautious = `name: cautious
model: openai/scripted-by-the-test
tools: [calculate]
approvals:
  - {tools: [calculate], expires: 3s}
`

// TestAuditAfterLogOutage: the log is down while a thread waits, and the interrupt expires
// meanwhile. When the log is back the thread continues and ends before any notification is
// delivered. The audit has the expiry, and the inbox lists nothing after a while.
func TestAuditAfterLogOutage(t *testing.T) {
	t.Parallel()
	c := kit.NewCluster(t)
	c.StartTemporal(t)
	log := c.StartNATS(t, 1)[0]
	c.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Agents, "cautious.yaml"), []byte(cautious), 0o600); err != nil {
		t.Fatal(err)
	}
	g := c.StartAPI(t)
	c.StartWorker(t)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "1+1")
	in := kit.NewInput(prompt)
	f := g.FollowAgent(t, "/v1/agents/cautious/runs", in)
	f.Finish(t)
	id := kit.InterruptsOf(t, f.Events)[0].ID
	log.Kill()
	kit.AwaitReadyStatus(t, g, http.StatusServiceUnavailable)
	outage, end := context.WithTimeout(t.Context(), awayForNotices)
	defer end()
	<-outage.Done()
	log.Start(t)
	kit.AwaitReadyStatus(t, g, http.StatusOK)

	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	until(ctx, t, "the model received nothing", func() bool {
		got := kit.ToolResultsSent(t, prompt)
		return len(got) == 1 && got[0] == "The approval of this call expired. It was not made."
	})
	until(ctx, t, "the audit lacks it", func() bool { return audited(ctx, t, g.Endpoint, in.ThreadID, id) == "expired" })
	until(ctx, t, "the inbox lists it", func() bool {
		var page struct{ Items []json.RawMessage }
		return read(ctx, t, g.Endpoint, "/v1/approvals", &page) && len(page.Items) == 0
	})
}

// until waits for a condition.
func until(ctx context.Context, t *testing.T, otherwise string, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatal(otherwise)
		case <-time.After(50 * time.Millisecond): // poll interval
		}
	}
}

// audited returns the outcome of an interrupt in the thread's audit.
func audited(ctx context.Context, t *testing.T, e *kit.Endpoint, thread, id string) string {
	t.Helper()
	var page struct {
		Items []struct{ ID, Status string }
	}
	if !read(ctx, t, e, "/v1/threads/"+thread+"/approvals", &page) || len(page.Items) != 1 || page.Items[0].ID != id {
		return ""
	}
	return page.Items[0].Status
}

// read decodes a response. ok is false if the API has nothing yet.
func read(ctx context.Context, t *testing.T, e *kit.Endpoint, path string, into any) (ok bool) {
	t.Helper()
	resp, err := e.Get(ctx, path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return true
}
