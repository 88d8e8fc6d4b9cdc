package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
)

// TestStuckThreads: the list has the running threads whose workflow waits for a worker, with the
// reason. A page asks about as many threads as it may have items, so it may be shorter than its
// limit, and still has a next page. Paused and ended threads, and those that have just begun, are not
// in it.
func TestStuckThreads(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	for i, id := range []string{"dead-1", "works", "dead-2", "new", "paused", "ended"} {
		entry := stream.IndexEntry{ThreadID: id, Agent: "a", RunID: "r", Status: stream.StatusRunning, UpdatedAt: time.Now().Add(time.Duration(i-60) * time.Minute), Seq: 1}
		entry.Owner = new(string)
		switch id {
		case "new":
			entry.UpdatedAt = time.Now()
		case "paused":
			entry.Status = stream.StatusPaused
		case "ended":
			entry.Status = stream.StatusFailed
		}
		value, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.log.Index().Put(node.ctx(), stream.IndexPrefix+"default."+id, value); err != nil {
			t.Fatal(err)
		}
	}
	node.temporal.waits = func(workflow string) bool { return !strings.HasSuffix(workflow, "/works") }
	node.awaitList("?stuck=true", "dead-2 running, dead-1 running")
	node.awaitList("?stuck=true&status=running&agent=b", "")

	type page struct {
		Items []struct {
			ThreadID string
			Stuck    struct {
				Reason, TaskQueue string
				Since             time.Time
			}
		}
		NextCursor string
	}
	var shown []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		var p page
		node.get("/v1/threads?stuck=true&limit=1&cursor="+cursor, &p)
		for _, item := range p.Items {
			shown = append(shown, item.ThreadID)
			if item.Stuck.TaskQueue != "perdure" || item.Stuck.Reason != `no worker polls the task queue "perdure": start one` || time.Since(item.Stuck.Since) < time.Hour {
				t.Errorf("%s: got %+v, want why it is stuck", item.ThreadID, item.Stuck)
			}
		}
		cursor = p.NextCursor
	}
	wantEqual(t, "stuck threads of all pages", strings.Join(shown, " "), "dead-2 dead-1")
	for _, query := range []string{"stuck=maybe", "stuck=true&status=idle"} {
		node.do(http.MethodGet, "/v1/threads?"+query, "").wantStatus(t, query, http.StatusBadRequest)
	}
}
