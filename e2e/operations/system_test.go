package operations

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
)

// TestSystemIsShown: the API shows the worker with its tools, the task queues that Temporal knows,
// and what the log stores. The command shows the same.
func TestSystemIsShown(t *testing.T) {
	t.Parallel()
	p := kit.Shared
	p.Run(t, kit.NewInput(kit.Marked("What is 12*7?")))
	status, body := request(t, http.MethodGet, p.URL("/v1/system"), nil)
	var system client.System
	if err := json.Unmarshal(body, &system); err != nil || status != http.StatusOK {
		t.Fatalf("system: %d %s, %v", status, body, err)
	}
	if !system.Ready || system.Mode != "perdure dev" || system.Temporal.Address != p.Addrs.Temporal || system.Temporal.Version == "" {
		t.Errorf("system = %s, want a ready perdure dev with its Temporal", body)
	}
	if len(system.Workers) != 1 || !slices.Contains(system.Workers[0].Tools, "calculate") || !slices.Contains(system.Workers[0].Queues, "perdure") {
		t.Errorf("workers = %+v, want one with its tools and its task queue", system.Workers)
	}
	for _, tasks := range []string{"workflow", "activity"} {
		if !slices.ContainsFunc(system.Queues, func(q client.TaskQueue) bool { return q.Name == "perdure" && q.Tasks == tasks && q.Pollers > 0 }) {
			t.Errorf("task queues = %+v, want pollers of %s tasks", system.Queues, tasks)
		}
	}
	if len(system.Log.Streams) != 2 || system.Log.Streams[0].Messages == 0 || system.Log.Bytes == 0 {
		t.Errorf("log = %+v, want the records of a run", system.Log)
	}
	if out := p.StartCommand(t, "system").Finish(t, 0); !strings.Contains(out, "perdure dev") || !strings.Contains(out, "workflow tasks") {
		t.Errorf("perdure system: %s, want the server and its task queues", out)
	}
}
