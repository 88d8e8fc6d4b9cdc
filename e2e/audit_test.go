package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// awayForNotices is an outage after which what has to be told of questions waits for longer than the run that goes
// on takes.
const awayForNotices = 40 * time.Second

// cautious is an agent that asks, and goes on without an answer soon.
const cautious = `name: cautious
model: openai/scripted-by-the-test
tools: [calculate]
approvals:
  - {tools: [calculate], expires: 3s}
`

// The log goes away while a thread waits, time runs out meanwhile, and the thread goes on and ends as soon as the log is
// back: before anybody can be told. The audit has it all the same, and the inbox lists nothing, if a little later.
func TestTheAuditWhenTheLogWasAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.startTemporal(t)
	log := c.startLog(t, 1)[0]
	c.agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.agents, "cautious.yaml"), []byte(cautious), 0o600); err != nil {
		t.Fatal(err)
	}
	g := c.startAPI(t)
	c.startWorker(t)
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "1+1")
	in := newInput(prompt)
	f := g.followAgent(t, "/v1/agents/cautious/runs", in)
	f.finish(t)
	id := interruptsOf(t, f.events)[0].ID
	log.kill()
	ready(t, g, http.StatusServiceUnavailable)
	outage, end := context.WithTimeout(t.Context(), awayForNotices)
	defer end()
	<-outage.Done()
	log.start(t)
	ready(t, g, http.StatusOK)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	awaitAudit(ctx, t, g.endpoint, in.ThreadID, id, "expired")
	if got := resultsOf(t, prompt); len(got) != 1 || got[0] != "Nobody approved this call in time. It was not made." {
		t.Errorf("the model heard %q", got)
	}
	for len(listedApprovals(ctx, t, g.endpoint)) > 0 {
		<-time.After(50 * time.Millisecond) // between two looks
	}
}

// awaitAudit waits until the audit of a thread has what became of a question.
func awaitAudit(ctx context.Context, t *testing.T, e *endpoint, thread, id, status string) {
	t.Helper()
	for {
		var page struct {
			Items []struct {
				ID, Status string
				Events     []struct{ Type string }
			}
		}
		read(ctx, t, e, "/v1/threads/"+thread+"/approvals", &page)
		if len(page.Items) == 1 && page.Items[0].ID == id && page.Items[0].Status == status {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the audit is %+v", page)
		case <-time.After(50 * time.Millisecond): // between two looks
		}
	}
}

// listedApprovals are those that wait.
func listedApprovals(ctx context.Context, t *testing.T, e *endpoint) []json.RawMessage {
	t.Helper()
	var page struct{ Items []json.RawMessage }
	read(ctx, t, e, "/v1/approvals", &page)
	return page.Items
}

// read decodes what a route shows.
func read(ctx context.Context, t *testing.T, e *endpoint, path string, into any) {
	t.Helper()
	resp, err := e.get(ctx, path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
