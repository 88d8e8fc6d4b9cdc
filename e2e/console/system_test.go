package console

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSystem: the page shows that the deployment is ready, its worker with its tools, and the
// quotas. A browser that requests an icon without naming it gets one.
func TestSystem(t *testing.T) {
	t.Parallel()
	tab := kit.OpenTab(t, kit.Shared.URL("/console/system"))
	tab.Await("h1 + [data-status=ready]", "ready")
	tab.Await("table[aria-label=Workers]", "calculate")
	tab.Await("table[aria-label='Task queues'] >> [data-status=ready]", "has workers")
	tab.Await("table[aria-label=Quotas]", "streams")
	tab.WantAccessible()
	var icon string
	if tab.Evaluate(`fetch("/favicon.ico").then(({status, headers}) => status + " " + headers.get("Content-Type"))`, &icon); icon != "200 image/svg+xml" {
		t.Errorf("GET /favicon.ico: got %s, want the icon", icon)
	}
}
