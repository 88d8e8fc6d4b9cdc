package operations

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// forgery is a page that makes the browser send requests to Perdure, with its cookies: the pages of
// all ports of a host are of one site.
const forgery = `<!doctype html><title>Forgery</title>
<form method="post" enctype="text/plain" action="%[1]s/v1/threads/t/pause"><input name='{"a":"' value='"}'><button>Win</button></form>
<script>
const forged = async (init) => (await fetch("%[1]s/v1/threads/t/pause", { method: "POST", credentials: "include", mode: "no-cors", ...init })).type;
</script>`

// openSocket is JavaScript that opens a WebSocket of Perdure at an origin, and resolves to open or
// refused. The promise socketEnded resolves to the code with which the socket is closed.
const openSocket = `new Promise((resolve) => {
  const ws = new WebSocket("%s/v1/ws", ["ag-ui.perdure.v1"]);
  window.socketEnded = new Promise((end) => { ws.onclose = ({ code }) => end(code); });
  ws.onopen = () => resolve("open");
  ws.onerror = () => resolve("refused");
})`

// follow is JavaScript that follows a thread with an EventSource, and resolves when it is open. The
// promise ended resolves when the source has given up.
const follow = `new Promise((resolve) => {
  const source = new EventSource("/v1/threads/%s/events");
  window.ended = new Promise((end) => { source.onerror = () => source.readyState === EventSource.CLOSED && end(true); });
  source.onopen = () => resolve(true);
})`

// Bounds of waits in a page, which a script could otherwise prolong for ever.
const (
	ended   = `Promise.race([window.ended, new Promise((_, fail) => setTimeout(() => fail(new Error("the stream has not ended")), 45000))])`
	renewed = `(async () => {
	  for (const end = Date.now() + 45000; Date.now() < end; )
	    if ((await (await fetch("/auth/session")).json()).roles[0] === "sales") return;
	  throw new Error("the session does not have the new role");
	})()`
)

// TestUsersSignInWithABrowser: users of a page sign in at an OpenID provider, and use the API with
// the cookie of their session, until they sign out or the provider ends the session. The streams of
// the session end with it. A page of another origin cannot use the cookie.
func TestUsersSignInWithABrowser(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	origin := "http://" + p.Addr
	provider := kit.StartSignInProvider(t, origin)
	p.Env = provider.Environ()
	p.InspectAtEnd(t)
	b := kit.NewBrowser(t)
	p.Start(t)
	provider.SetRoles(t, "ann", "finance")

	page := b.Open(origin+"/v1/threads", "401", "404") // the browser reports each response with 401, and looks for an icon
	page.Type("input[name=name]", "ann")
	page.Click("button")
	page.Await("body", `{"items":[]}`)
	cookie := page.Cookies(origin)["perdure"]
	if len(cookie.Value) < 40 || !cookie.HTTPOnly || cookie.SameSite != "Lax" || cookie.Path != "/" || cookie.Expires != -1 || cookie.Secure {
		t.Errorf("cookie = %+v, want one that scripts and other sites cannot use", cookie)
	}
	if caller := session(page); caller.Subject != "ann" || caller.Tenant != "shop" || !slices.Equal(caller.Roles, []string{"finance"}) || caller.ExpiresAt == "" {
		t.Errorf("caller = %+v, want ann with the role finance", caller)
	}

	in := kit.NewInput("What is 12*7?")
	p.Threads.Add(in.ThreadID)
	page.Evaluate(fmt.Sprintf(`fetch("/v1/agents/demo/runs", {
	  method: "POST", headers: { "Content-Type": "application/json" },
	  body: JSON.stringify({ threadId: %q, runId: "r", messages: [{ id: "m", role: "user", content: "What is 12*7?" }] }),
	}).then((r) => r.text())`, in.ThreadID), new(string))
	var threads struct{ Items []struct{ ThreadID string } }
	page.Evaluate(`fetch("/v1/threads").then((r) => r.json())`, &threads)
	if len(threads.Items) != 1 || threads.Items[0].ThreadID != in.ThreadID {
		t.Errorf("threads of ann = %+v, want her own", threads)
	}
	var export string
	page.Evaluate(`fetch("/v1/subjects/ann/export").then((r) => r.text())`, &export)
	if strings.Count(export, `"kind":"session"`) != 1 || !strings.Contains(export, `"roles":["finance"]`) || strings.Contains(export, cookie.Value) {
		t.Errorf("export of ann:\n%s\nwant her session without its token", export)
	}

	wantForgeriesRefused(t, b, origin)

	page.Evaluate(fmt.Sprintf(follow, in.ThreadID), nil)
	var socket string
	if page.Evaluate(fmt.Sprintf(openSocket, wsOf(origin)), &socket); socket != "open" {
		t.Fatalf("WebSocket of the page: %s, want open", socket)
	}
	second := b.Open(origin+"/v1/threads", "401", "404")
	var signedOut struct{ Location string }
	second.Evaluate(`fetch("/auth/logout", { method: "POST" }).then((r) => r.json())`, &signedOut)
	if !strings.HasPrefix(signedOut.Location, provider.URL+"/session/end?") {
		t.Errorf("location after sign-out = %s, want that of the provider", signedOut.Location)
	}
	page.Evaluate(ended, new(bool))
	var code int
	if page.Evaluate("window.socketEnded", &code); code != 3000 {
		t.Errorf("WebSocket after the sign-out: closed with %d, want 3000", code)
	}
	wantSignedOut(t, page, "unauthenticated")
	stale := []string{"Cookie", "perdure=" + cookie.Value}
	kit.WantProblem(t, p.RequestAs(t, "", http.MethodGet, "/v1/threads", nil, stale...), 401, "session_ended")

	// The user is still signed in at the provider, which does not ask again.
	page.Reload()
	page.Await("body", in.ThreadID)
	if again := page.Cookies(origin)["perdure"]; again.Value == "" || again.Value == cookie.Value {
		t.Error("token after a further sign-in: got the earlier one, want another")
	}
	provider.SetRoles(t, "ann", "sales")
	page.Evaluate(renewed, nil)
	page.Evaluate(fmt.Sprintf(follow, in.ThreadID), nil)
	second = b.Open(provider.URL + "/session/end")
	second.Click("button[value=yes]")
	page.Evaluate(ended, new(bool))
	wantSignedOut(t, page, "session_ended")

	page.Reload()
	page.Type("input[name=name]", "bob")
	page.Click("button")
	page.Await("body", `{"items":[]}`)
	page.Evaluate(`(() => {
	  const form = document.createElement("form");
	  Object.assign(form, { method: "post", action: "/auth/logout" });
	  document.body.append(form);
	  form.submit();
	})()`, nil)
	page.Click("button[value=yes]")
	page.Await("h1", "Perdure")
	if last, ok := page.Cookies(origin)["perdure"]; ok {
		t.Errorf("cookie after sign-out with a form = %+v, want none", last)
	}
	if output := p.Output.String(); strings.Contains(output, cookie.Value) || strings.Contains(output, "secret-of-the-console") {
		t.Error("output of Perdure has a token or a secret, want none")
	}
}

// TestSessionBehindTLS: behind a proxy that ends TLS, the cookie of a session is secure and bound to
// its host, and the user signs in, works and signs out with it.
func TestSessionBehindTLS(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: p.Addr}))
	t.Cleanup(proxy.Close)
	provider := kit.StartSignInProvider(t, proxy.URL)
	p.Env = append(provider.Environ(), "PERDURE_PUBLIC_URL="+proxy.URL)
	p.InspectAtEnd(t)
	b := kit.NewBrowser(t)
	p.Start(t)
	provider.SetRoles(t, "ann", "finance")

	page := b.Open(proxy.URL+"/v1/threads", "401", "404") // the browser reports the response with 401, and looks for an icon
	page.Type("input[name=name]", "ann")
	page.Click("button")
	page.Await("body", `{"items":[]}`)
	cookies := page.Cookies(proxy.URL)
	if c := cookies["__Host-perdure"]; len(c.Value) < 40 || !c.Secure || !c.HTTPOnly || c.SameSite != "Lax" || c.Path != "/" {
		t.Errorf("cookies = %+v, want a secure one of this host only", cookies)
	}
	if c := session(page); c.Subject != "ann" {
		t.Errorf("caller = %+v, want ann", c)
	}
	page.Evaluate(`fetch("/auth/logout", { method: "POST" }).then((r) => r.json())`, new(any))
	wantSignedOut(t, page, "unauthenticated")
	if c, ok := page.Cookies(proxy.URL)["__Host-perdure"]; ok {
		t.Errorf("cookie after the sign-out = %+v, want none", c)
	}
}

// caller is the answer of /auth/session.
type caller struct {
	Tenant, Subject, Code, ExpiresAt string
	Roles                            []string
}

// session returns the caller of a page.
func session(page *kit.Tab) (c caller) {
	page.Evaluate(`fetch("/auth/session").then((r) => r.json())`, &c)
	return c
}

// wantSignedOut checks that a page has no session.
func wantSignedOut(t *testing.T, page *kit.Tab, code string) {
	t.Helper()
	if c := session(page); c.Code != code {
		t.Errorf("caller after the end of the session = %+v, want %s", c, code)
	}
}

// wsOf returns an origin with the scheme of WebSockets.
func wsOf(origin string) string { return "ws" + strings.TrimPrefix(origin, "http") }

// wantForgeriesRefused checks that a page of another origin cannot use the session of the browser.
func wantForgeriesRefused(t *testing.T, b *kit.Browser, origin string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, forgery, origin)
	}))
	defer server.Close()
	page := b.Open(server.URL, "403", "404", "WebSocket")
	if _, sent := page.Cookies(origin)["perdure"]; !sent {
		t.Fatal("the forged requests have no cookie, so they prove nothing")
	}
	var outcome string
	if page.Evaluate(fmt.Sprintf(openSocket, wsOf(origin)), &outcome); outcome != "refused" {
		t.Errorf("WebSocket of another origin: %s, want refused", outcome)
	}
	page.Evaluate(`forged({ body: "{}" })`, new(string))
	page.WantConsole("403")
	page.Click("button")
	page.Await("body", "cross_site_request")
}
