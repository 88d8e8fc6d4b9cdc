package console

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

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
