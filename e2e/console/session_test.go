package console

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSession: a person signs in at the provider, and returns to the page that they wanted. When the
// session ends elsewhere, the page says so.
func TestSession(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	origin := "http://" + p.Addr
	p.Env = kit.StartSignInProvider(t, origin).Environ()
	p.InspectAtEnd(t)
	b := kit.NewBrowser(t)
	p.Start(t)

	tab := b.Open(origin+"/console/inbox?view=decided", "401 (Unauthorized)", "WebSocket connection to")
	tab.Await("main", "You are not signed in.")
	tab.WantAccessible()
	tab.Click("main >> text=Sign in >> nth=-1")
	tab.Type("input[name=name]", "ann")
	tab.Click("button")
	tab.Await("nav[aria-label=Views] [aria-current=page]", "Decided")

	other := b.Open(origin+"/console/", "401 (Unauthorized)", "WebSocket connection to")
	other.Click("role=button[name='Sign out']")
	other.Await("main", "You are not signed in.")
	tab.Await("[role=alert]", "Your session has ended. Sign in again to continue on this page.")
	tab.WantAccessible()
}
