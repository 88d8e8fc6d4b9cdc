package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// assertedAgents are agents whose tools receive assertions: over HTTP, and of MCP servers with a URL
// and with a command.
const assertedAgents = `name: clerk
model: scripted/clerk
tools: [charge, "mcp:web/look", "mcp:program/look"]
---
name: careful
model: scripted/careful
tools: [charge]
approvals: [{tools: [charge]}]
---
kind: tool
name: charge
parameters: {type: object, required: [note], properties: {note: {type: string}}}
http: {method: POST, url: "%[1]s/charge"}
idempotent: true
---
kind: mcp
name: web
url: %[1]s/mcp
audience: looker
---
kind: mcp
name: program
command: [%[2]s, %[3]s, "%[1]s/look"]
---
kind: script
name: careful
turns: [{steps: [{calls: [{tool: charge, arguments: {note: approved}}]}, {say: Done.}]}]
---
kind: script
name: clerk
turns:
  - when: \ball\b
    steps: [{calls: [{tool: charge, arguments: {note: plain}}, {tool: web_look, arguments: {}}, {tool: program_look, arguments: {}}]}, {say: Done.}]
  - when: \bquestion\b
    steps: [{calls: [{tool: charge, arguments: {note: question}}]}, {say: Done.}]
  - when: \bhang\b
    steps: [{calls: [{tool: charge, arguments: {note: hang}}]}, {say: Done.}]
  - steps: [{calls: [{tool: charge, arguments: {note: plain}}]}, {say: Done.}]
`

const (
	// lookCommand is the first argument that makes the test binary an MCP server that sends its
	// assertions to the URL in the second argument.
	lookCommand = "look"
	// assertionMeta is the member of _meta with the assertion.
	assertionMeta = "io.github.perdure/assertion"
	// assertionIssuer is the issuer of the test's assertions.
	assertionIssuer = "https://agents.example"
)

// addLook adds the tool look to an MCP server. It passes its assertion to receive, and returns it.
func addLook(s *mcp.Server, receive func(assertion string) error) {
	s.AddTool(&mcp.Tool{Name: "look", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token, _ := req.Params.Meta[assertionMeta].(string)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "looked: " + token}}}, receive(token)
	})
}

// look is the MCP server of lookCommand.
func look(url string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "look", Version: "1"}, nil)
	addLook(s, func(token string) error {
		resp, err := http.Post(url, "text/plain", strings.NewReader(token))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// received is an assertion that a tool received.
type received struct{ tool, token string }

// assertedServer is the server of the tools. It sends assertions back, as a hostile server may.
type assertedServer struct {
	*http.ServeMux

	received chan received
	hanging  atomic.Bool // the first call with the note hang has arrived
}

// startAssertedServer starts the server of the tools.
func startAssertedServer(t *testing.T) (s *assertedServer, url string) {
	t.Helper()
	s = &assertedServer{ServeMux: http.NewServeMux(), received: make(chan received, 64)}
	web := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	addLook(web, func(token string) error { s.received <- received{"web_look", token}; return nil })
	s.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return web }, &mcp.StreamableHTTPOptions{Stateless: true}))
	s.HandleFunc("/look", func(_ http.ResponseWriter, r *http.Request) {
		token, _ := io.ReadAll(r.Body)
		s.received <- received{"program_look", string(token)}
	})
	s.HandleFunc("/charge", s.charge)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// charge serves the tool charge.
func (s *assertedServer) charge(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	token := r.Header.Get("Perdure-Assertion")
	s.received <- received{"charge", token}
	switch {
	case strings.Contains(string(body), "question") && r.Header.Get("Perdure-Answers") == "":
		w.Header().Set("Content-Type", "application/vnd.perdure.question+json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"message":"Sure? %s","responseSchema":{"type":"object"}}`, token)
	case strings.Contains(string(body), "hang") && s.hanging.CompareAndSwap(false, true):
		<-r.Context().Done()
	default:
		_, _ = io.WriteString(w, "charged: "+token)
	}
}

// assertionTest is a cluster with the server of its tools, and a verifier that has only the route of
// the public keys.
type assertionTest struct {
	*kit.Cluster

	api    *kit.API
	server *assertedServer
	url    string
	keys   *oidc.RemoteKeySet
	thread string
	runs   int
}

// post sends a request of a user.
func (a *assertionTest) post(t *testing.T, user, path string, body any) *http.Response {
	t.Helper()
	return a.api.RequestAs(t, "", http.MethodPost, path, body, "X-Forwarded-User", user)
}

// run begins a run of a user in the thread. The caller reads its events.
func (a *assertionTest) run(t *testing.T, user, agent, text string) *http.Response {
	t.Helper()
	in := kit.NewInput(text)
	a.runs++
	in.ThreadID, in.RunID = a.thread, fmt.Sprintf("run-%d", a.runs)
	in.ForwardedProps = map[string]any{"perdure": map[string]any{"onBusy": "enqueue"}} // after a run that a decision has continued
	a.api.Threads.Add(in.ThreadID)
	return a.post(t, user, "/v1/agents/"+agent+"/runs", in)
}

// finish reads the events of a run. None of them has an assertion.
func (a *assertionTest) finish(t *testing.T, resp *http.Response) []kit.Event {
	t.Helper()
	events := kit.WantEvents(t, resp)
	for _, e := range events {
		if strings.Contains(string(e.Data), "eyJ") {
			t.Errorf("event = %s, want no assertion", e.Data)
		}
	}
	return events
}

// claims are the claims of an assertion that differ between the calls of the test.
type claims struct {
	Subject      string   `json:"sub"`
	Contributors []string `json:"contributors"`
	Call         string   `json:"toolCallId"`
	ID           string   `json:"jti"`
	Issued       int64    `json:"iat"`
	Expires      int64    `json:"exp"`

	keyID string
}

// next returns the claims of the next assertion of a tool, which the verifier accepts.
func (a *assertionTest) next(t *testing.T, tool, agent, audience string) claims {
	t.Helper()
	return a.verify(t, a.await(t), tool, agent, audience)
}

// await returns the next assertion of any tool.
func (a *assertionTest) await(t *testing.T) received {
	t.Helper()
	select {
	case got := <-a.server.received:
		return got
	case <-time.After(kit.WaitTimeout):
		t.Fatal("call of a tool: got no request, want one")
	}
	return received{}
}

// verify returns the claims of an assertion, which the verifier accepts.
func (a *assertionTest) verify(t *testing.T, got received, tool, agent, audience string) claims {
	t.Helper()
	verifier := oidc.NewVerifier(assertionIssuer, a.keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{oidc.ES256}})
	token, err := verifier.Verify(t.Context(), got.token)
	if err != nil {
		t.Fatalf("assertion of %s: %v", got.tool, err)
	}
	var c claims
	var rest struct {
		Tenant string               `json:"tenant"`
		Thread string               `json:"threadId"`
		Run    string               `json:"runId"`
		Tool   string               `json:"tool"`
		Actor  struct{ Sub string } `json:"act"`
	}
	for _, into := range []any{&c, &rest} {
		if err := token.Claims(into); err != nil {
			t.Fatal(err)
		}
	}
	if rest.Tenant != "default" || rest.Thread != a.thread || rest.Run == "" || rest.Tool != tool || rest.Actor.Sub != agent || c.Call == "" {
		t.Errorf("claims = %+v %+v, want those of a call of %s by %s", c, rest, tool, agent)
	}
	if c.Expires-c.Issued != 300 {
		t.Errorf("assertion lasts %d s, want 300", c.Expires-c.Issued)
	}
	parsed, err := jose.ParseSigned(got.token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	c.keyID = parsed.Signatures[0].Header.KeyID
	return c
}

// charged is next for the tool charge of the agent clerk.
func (a *assertionTest) charged(t *testing.T) claims {
	t.Helper()
	return a.next(t, "charge", "clerk", a.url)
}

// newKeys writes the file of the keys of assertions.
func (a *assertionTest) newKeys(t *testing.T, file string, keys ...[]byte) {
	t.Helper()
	var all []byte
	for _, key := range keys {
		all = append(all, key...)
	}
	next := file + ".next"
	if err := os.WriteFile(next, all, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// awaitKeys waits until the API publishes a number of keys.
func (a *assertionTest) awaitKeys(t *testing.T, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	var set struct{ Keys []map[string]string }
	for len(set.Keys) != want {
		a.api.GetJSON(t, "/.well-known/jwks.json", &set)
		if ctx.Err() != nil {
			t.Fatalf("published keys = %v, want %d", set.Keys, want)
		}
	}
	for _, key := range set.Keys {
		if key["d"] != "" || key["alg"] != "ES256" || key["kid"] == "" {
			t.Errorf("published key = %v, want a public one", key)
		}
	}
}

// TestAssertions: the servers of tools receive assertions that a verifier accepts which knows only
// the API. They name the requester and everybody who has written in the thread.
func TestAssertions(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "keys.pem")
	server, url := startAssertedServer(t) // stops after the workers, which hold connections to it
	a := &assertionTest{Cluster: kit.NewCluster(t), server: server, url: url, thread: kit.NewThread()}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(a.Agents, "all.yaml"), fmt.Appendf(nil, assertedAgents, a.url, program, lookCommand), 0o600); err != nil {
		t.Fatal(err)
	}
	oldKey, newKey := generateKey(t), generateKey(t)
	a.newKeys(t, keyFile, oldKey)
	a.Env = []string{
		"PERDURE_AGENTS=" + a.Agents, "PERDURE_ALLOW_PRIVATE_HOSTS=true", "PERDURE_PUBLIC_URL=" + assertionIssuer, "PERDURE_ASSERTION_KEYS_FILE=" + keyFile,
	}
	a.StartServers(t)
	a.api = a.StartAPI(t)
	a.awaitKeys(t, 0)
	worker := a.StartWorker(t)
	a.awaitKeys(t, 1)
	a.keys = oidc.NewRemoteKeySet(t.Context(), a.api.URL("/.well-known/jwks.json"))

	a.checkTransports(t)
	a.checkApproval(t)
	a.checkQuestion(t)
	a.checkKilledWorker(t, worker)
	a.checkRotation(t, keyFile, oldKey, newKey)
}

// checkTransports calls a tool of each kind.
func (a *assertionTest) checkTransports(t *testing.T) {
	t.Helper()
	a.finish(t, a.run(t, "ann", "clerk", "Use all tools."))
	audiences := map[string]string{"charge": a.url, "web_look": "looker", "program_look": "mcp:program"}
	ids := map[string]bool{}
	for range audiences {
		got := a.await(t) // the calls of a turn are concurrent
		c := a.verify(t, got, got.tool, "clerk", audiences[got.tool])
		ids[got.tool+c.ID] = true
		if diff := cmp.Diff([]string{"ann"}, c.Contributors); diff != "" || c.Subject != "ann" {
			t.Errorf("assertion of %s is for %s, contributors (-want +got):\n%s", got.tool, c.Subject, diff)
		}
	}
	if len(ids) != 3 {
		t.Errorf("assertions = %v, want one of each tool", ids)
	}
}

// checkApproval lets Cal approve a call for Bob, who does not write with the decision.
func (a *assertionTest) checkApproval(t *testing.T) {
	t.Helper()
	asked := kit.InterruptsOf(t, a.finish(t, a.run(t, "bob", "careful", "Charge, please.")))[0]
	if len(a.server.received) > 0 {
		t.Fatal("the call was made before its approval, want it to wait")
	}
	decidedAt := time.Now().Unix()
	a.decide(t, "cal", asked.ID, `{"decision":"approve"}`)
	c := a.next(t, "charge", "careful", a.url)
	if diff := cmp.Diff([]string{"bob", "ann"}, c.Contributors); diff != "" || c.Subject != "bob" || c.Issued < decidedAt || c.Call != asked.ToolCallID {
		t.Errorf("assertion = %+v, want a fresh one for bob, contributors (-want +got):\n%s", c, diff)
	}
}

// checkQuestion lets Cal answer a question of the tool, whose call is made again.
func (a *assertionTest) checkQuestion(t *testing.T) {
	t.Helper()
	asked := kit.InterruptsOf(t, a.finish(t, a.run(t, "ann", "clerk", "Ask a question.")))[0]
	before := a.charged(t)
	if !strings.Contains(asked.Message, "Sure? [secret]") {
		t.Errorf("question = %q, want no assertion", asked.Message)
	}
	a.decide(t, "cal", asked.ID, `{"decision":"answer","content":{}}`)
	after := a.charged(t)
	if before.ID == after.ID || before.Call != after.Call {
		t.Errorf("assertions = %+v and %+v, want two of one call", before, after)
	}
	if diff := cmp.Diff([]string{"ann", "bob", "cal"}, after.Contributors); diff != "" || len(before.Contributors) != 2 {
		t.Errorf("contributors before the answer: %q, after it (-want +got):\n%s", before.Contributors, diff)
	}
}

// checkKilledWorker kills the worker in a call. Another worker makes the call again.
func (a *assertionTest) checkKilledWorker(t *testing.T, worker *kit.Process) {
	t.Helper()
	began := a.run(t, "ann", "clerk", "Please hang.")
	before := a.charged(t)
	worker.Kill()
	a.StartWorker(t)
	after := a.charged(t)
	if before.ID == after.ID || before.Call != after.Call || after.Subject != "ann" {
		t.Errorf("assertions = %+v and %+v, want two of one call", before, after)
	}
	a.finish(t, began)
}

// checkRotation replaces the key in the thread, without a restart. The verifier accepts every
// assertion.
func (a *assertionTest) checkRotation(t *testing.T, file string, oldKey, newKey []byte) {
	t.Helper()
	call := func() string {
		t.Helper()
		a.finish(t, a.run(t, "ann", "clerk", "Charge."))
		return a.charged(t).keyID
	}
	before := call()
	a.newKeys(t, file, oldKey, newKey)
	a.awaitKeys(t, 2)
	if id := call(); id != before {
		t.Errorf("key = %s at once after the new one was added, want %s", id, before)
	}
	a.newKeys(t, file, newKey)
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for call() == before {
		if ctx.Err() != nil {
			t.Fatal("the removed key still signs, want the new one")
		}
	}
	a.awaitKeys(t, 2) // assertions of the removed key are valid for some minutes
}

// decide sends a decision of a user.
func (a *assertionTest) decide(t *testing.T, user, interrupt, body string) {
	t.Helper()
	resp := a.post(t, user, "/v1/threads/"+a.thread+"/approvals/"+interrupt, json.RawMessage(body))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("decision of %s: got %s, want %d", user, resp.Status, http.StatusOK)
	}
}

// generateKey returns a new private key in PEM.
func generateKey(t *testing.T) []byte {
	t.Helper()
	key, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}
