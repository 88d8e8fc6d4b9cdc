package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRunReconnects: the server dies while the page of a run is open. The page says since when it
// shows what it last knew, and that it does not know whether the run is active. After the restart
// it follows the run to its end.
func TestRunReconnects(t *testing.T) {
	t.Parallel()
	p := openChat(t)
	in := kit.NewInput("Count")
	p.FollowAgent(t, "/v1/agents/counter/runs", in)
	tab := kit.OpenTab(t, p.URL("/console/threads/"+in.ThreadID+"/runs/"+in.RunID), "Failed to load resource", "404")
	tab.Await("h1 + [data-status=running]", "running")
	tab.Await("[role=treegrid]", "counter")
	p.Kill()
	tab.Await("main [role=status]", "Reconnecting … Here is the run as of")
	tab.Await("h1 + [data-status=unknown]", "unknown")
	tab.WantAccessible()
	p.Start(t)
	tab.AwaitGone("main [role=status]:has-text('Reconnecting')")
	tab.Await("h1 + [data-status=finished]", "finished")
}
