package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSession: with browser sessions, a deep link leads over the provider's page to its screen. The
// console uses the cookie of the session, and asks to sign in again when the session has ended.
func TestSession(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	origin := "http://" + p.Addr
	provider := kit.StartSignInProvider(t, origin)
	p.Env = provider.Environ()
	p.InspectAtEnd(t)
	p.Start(t)
	provider.SetRoles(t, "ann", "finance")

	tab := kit.OpenTab(t, origin+"/console/chat/demo?from=a%26b", "401") // the browser reports the first request
	tab.Await("h1", "Sign in to Perdure")
	tab.WantAccessible()
	tab.Click("text=Sign in >> nth=-1")
	tab.Type("input[name=name]", "ann")
	tab.Click("button")
	tab.Await("h1", "demo")
	var address string
	if tab.Evaluate("location.pathname + location.search", &address); address != "/console/chat/demo?from=a%26b" {
		t.Errorf("after the sign-in the page is at %s, want the address that was opened", address)
	}
	say(tab, "What is 12*7?")
	tab.Await(transcript, "84")
	p.Threads.Add(threadOf(tab))

	other := kit.NewBrowser(t).Open(origin+"/console/inbox", "401")
	other.Await("h1", "Sign in to Perdure") // another profile has no session
	tab.Click("role=button[name='Sign out']")
	tab.Await("h1", "Sign in to Perdure")
	tab.Reload()
	tab.Await("h1", "Sign in to Perdure")
}

// TestProxyWithPath: behind a proxy that serves the API below a path, which PERDURE_PUBLIC_URL names,
// the console finds its files, the API and its screens, also those of IDs with a slash.
func TestProxyWithPath(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(p.URL(""))
		if err != nil {
			t.Error(err)
			return
		}
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(http.StripPrefix("/agents", forward))
	t.Cleanup(proxy.Close)
	p.Env = []string{"PERDURE_PUBLIC_URL=" + proxy.URL + "/agents"}
	p.InspectAtEnd(t)
	p.Start(t)

	tab := kit.OpenTab(t, proxy.URL+"/agents/console/chat/demo")
	say(tab, "What is 12*7?")
	tab.Await(transcript, "84")
	thread := threadOf(tab)
	p.Threads.Add(thread)
	tab.Press("Escape", "g", "t")
	tab.Await("table", "What is 12*7?")
	var address string
	if tab.Evaluate("location.pathname", &address); address != "/agents/console/threads" {
		t.Errorf("the list of threads is at %s", address)
	}
	tab.Evaluate(`fetch("/agents/v1/agents/demo/runs", {
	  method: "POST", headers: { "Content-Type": "application/json" },
	  body: JSON.stringify({ threadId: "a/b%2F", runId: "r/1", messages: [{ id: "m", role: "user", content: "What is 12*7?" }] }),
	}).then((r) => r.text())`, new(string))
	p.Threads.Add("a/b%2F")
	deep := kit.OpenTab(t, proxy.URL+"/agents/console/threads/a%2Fb%252F/runs/r%2F1")
	deep.Await(rowWith("demo"), "finished")
}

// threadOf returns the ID of the thread whose conversation a tab shows.
func threadOf(tab *kit.Tab) (id string) {
	tab.Evaluate(`decodeURIComponent(location.pathname.split("/threads/")[1])`, &id)
	return id
}
