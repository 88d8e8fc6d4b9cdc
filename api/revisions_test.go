package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth/policy"
)

const brief = "name: a\nmodel: test/m\ninstructions: |\n  Be brief.\n  Be kind.\n"

// publishRevision publishes a definition and returns its revision.
func (n *node) publishRevision(definition string, header ...string) string {
	n.t.Helper()
	a := n.do(http.MethodPut, "/v1/agents/a", definition, header...)
	var got agentroutes.Agent
	err := json.Unmarshal([]byte(a.body), &got)
	if err != nil {
		n.t.Fatal(err)
	}
	a.mustStatus(n.t, "status", http.StatusOK)
	if want := `"` + got.Revision + `"`; a.header.Get("ETag") != want {
		n.t.Errorf("ETag %s, want %s", a.header.Get("ETag"), want)
	}
	return got.Revision
}

// TestPutAgent: a published definition is current at once, also for new runs. Runs that have begun
// keep their revision.
func TestPutAgent(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	revision := node.publishRevision(brief)
	node.temporal.closed = func(string) {}
	node.post(inputOf("r2", "and now?"))
	if node.temporal.starts[0].Revision == revision || node.temporal.starts[1].Revision != revision {
		t.Errorf("revisions of the runs: got %q and %q, want %q for the second only", node.temporal.starts[0].Revision, node.temporal.starts[1].Revision, revision)
	}
	d, err := agents.Parse("", []byte(brief))
	if err != nil {
		t.Fatal(err)
	}
	if want := d.Revision(); revision != want {
		t.Errorf("revision: got %s, want the file's %s", revision, want)
	}
	shown := node.do(http.MethodGet, "/v1/agents/a", "")
	wantEqual(t, "header ETag", shown.header.Get("ETag"), `"`+revision+`"`)
	if !strings.Contains(shown.body, revision) {
		t.Errorf("body = %q, want text with %q", shown.body, revision)
	}
	if strings.Contains(shown.body, "Be kind") {
		t.Errorf("body = %q, want no %q", shown.body, "Be kind")
	}
	body, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again := node.publishRevision(string(body), "Content-Type", "application/json; charset=utf-8")
	wantEqual(t, "revision of the file as JSON", again, revision)
	created := node.do(http.MethodPut, "/v1/agents/new", "name: new\nmodel: test/m\n", "Content-Type", "application/yaml")
	created.wantStatus(t, "a new agent", http.StatusCreated)
	wantEqual(t, "status of the published agent", node.do(http.MethodGet, "/v1/agents/new", "").status, http.StatusOK)
}

func TestPutAgentRefuses(t *testing.T) {
	t.Parallel()
	node := setup(t)
	tests := map[string]struct {
		path, body  string
		contentType string
		wantStatus  int
		wantCode    string
		wantErrors  []problem.Mistake
	}{
		"nothing":         {body: "", wantStatus: 400, wantCode: "invalid_agent", wantErrors: []problem.Mistake{{Line: 1, Detail: "is empty: it needs the keys of a definition, such as name and model of an agent"}}},
		"another name":    {body: "name: b\nmodel: p/m\n", wantStatus: 400, wantCode: "invalid_agent"},
		"a name no agent": {path: "/v1/agents/A%2F", body: "name: A/\nmodel: p/m\n", wantStatus: 400, wantCode: "invalid_agent", wantErrors: []problem.Mistake{{Pointer: "/name", Line: 1, Column: 7, Detail: `name "A/" must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit`}}},
		"mistakes": {body: "name: a\nmodell: p/m\nlimits:\n  turns: 0\n", wantStatus: 400, wantCode: "invalid_agent", wantErrors: []problem.Mistake{
			{Pointer: "/model", Line: 1, Column: 1, Detail: "model is missing"},
			{Pointer: "/modell", Line: 2, Column: 1, Detail: `unknown key "modell" (did you mean "model"?)`},
			{Pointer: "/limits/turns", Line: 4, Column: 10, Detail: "limits.turns must be greater than zero"},
		}},
		"JSON": {body: "{\"name\": \"a\",\n \"model\": 7}", contentType: "application/json", wantStatus: 400, wantCode: "invalid_agent", wantErrors: []problem.Mistake{
			{Pointer: "/model", Line: 2, Column: 11, Detail: "model must be a model, or a list of models, not a number"},
		}},
		"an entry of a list": {body: "name: a\nmodel: p/m\nstate: {predict: [{tool: f, argument: x, key: ''}]}\n", wantStatus: 400, wantCode: "invalid_agent", wantErrors: []problem.Mistake{
			{Pointer: "/state/predict/0/key", Line: 3, Column: 47, Detail: "state.predict[0].key must have 1 to 128 bytes of UTF-8"},
		}},
		"too much":       {body: "name: a\nmodel: p/m\n" + strings.Repeat("#", 1<<20), wantStatus: 413, wantCode: "too_large"},
		"another type":   {body: brief, contentType: "text/html", wantStatus: 415, wantCode: "unsupported_media_type"},
		"no type at all": {body: brief, contentType: ";", wantStatus: 415, wantCode: "unsupported_media_type"},
	}
	for name, tt := range tests {
		path := tt.path
		if path == "" {
			path = "/v1/agents/a"
		}
		var header []string
		if tt.contentType != "" {
			header = []string{"Content-Type", tt.contentType}
		}
		a := node.do(http.MethodPut, path, tt.body, header...)
		if a.status != tt.wantStatus || a.problem.Code != tt.wantCode {
			t.Errorf("%s: got %d %s, want %d %s", name, a.status, a.body, tt.wantStatus, tt.wantCode)
			continue
		}
		if diff := cmp.Diff(tt.wantErrors, a.problem.Errors); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(tt.wantErrors) > 0 && (a.problem.Pointer != tt.wantErrors[0].Pointer || a.problem.Detail != tt.wantErrors[0].Detail) {
			t.Errorf("%s: problem: got %s, want its first mistake", name, a.body)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents/a/revisions", ""); strings.Count(a.body, "publishedAt") != 1 {
		t.Errorf("revisions: got %s, want 1", a.body)
	}
}

func TestPutAgentIfMatch(t *testing.T) {
	t.Parallel()
	node := setup(t)
	first := node.publishRevision(brief)
	second := node.publishRevision(brief+"description: two\n", "If-Match", `"other", "`+first+`"`)
	again := node.publishRevision(brief+"description: two\n", "If-Match", `"`+first+`"`)
	wantEqual(t, "revision of a repeated publication", again, second)
	for i, tt := range []struct {
		path, header, value string
		wantStatus          int
	}{
		{"a", "If-Match", `"` + first + `"`, 412},
		{"a", "If-Match", `W/"` + second + `"`, 412}, // a weak tag never matches
		{"a", "If-Match", second, 412},               // nor does a tag without quotes
		{"a", "If-None-Match", "*", 412},
		{"b", "If-Match", "*", 412},
		{"b", "If-Match", `""`, 412},
		{"a", "If-None-Match", `"` + first + `"`, 400},
		{"b", "If-None-Match", "*", 201},
		{"b", "If-Match", "*", 200},
		{"a", "If-Match", `"` + second + `"`, 200},
	} {
		body := fmt.Sprintf("name: %s\nmodel: test/m\ndescription: try %d\n", tt.path, i)
		a := node.do(http.MethodPut, "/v1/agents/"+tt.path, body, tt.header, tt.value)
		a.wantStatus(t, tt.header+": status", tt.wantStatus)
		if tt.wantStatus == 412 && a.problem.Code != "revision_mismatch" {
			t.Errorf("%s: %s on %s: got %d %s, want revision_mismatch", tt.header, tt.value, tt.path, a.status, a.body)
		}
	}
	if a := node.do(http.MethodPut, "/v1/agents/a", brief, "If-Match", ""); a.problem.Code != "invalid_precondition" {
		t.Errorf("an empty condition: problem code = %q, want %q", a.problem.Code, "invalid_precondition")
	}
	if a := node.do(http.MethodPut, "/v1/agents/a", brief, "If-Match", "*", "If-None-Match", "*"); a.problem.Code != "invalid_precondition" {
		t.Errorf("both conditions: problem code = %q, want %q", a.problem.Code, "invalid_precondition")
	}
}

// missingTools are tools that no worker has.
type missingTools []string

func (l missingTools) Missing(tools []string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return !slices.Contains(l, tool) })
}

func (missingTools) Known() agents.Names {
	return agents.Names{Tools: []string{"charge"}, Programs: []string{"invoice"}}
}

func (missingTools) Fits(json.RawMessage, json.RawMessage) (pointer, reason string, err error) {
	return "", "", nil
}

func (l missingTools) Check(context.Context, string, json.RawMessage) (pointer, reason string, err error) {
	return "", "", nil
}

// TestPublicationReportsMissingTools: a publication reports tools that no worker has, and succeeds.
func TestPublicationReportsMissingTools(t *testing.T) {
	t.Parallel()
	var logged output
	node := setup(t, func(c *api.Config) {
		c.Tools, c.Logger = missingTools{"refund"}, slog.New(slog.NewTextHandler(&logged, nil))
		c.Known = func() agents.Names { return agents.Names{Providers: []string{"test"}} }
	})
	node.publishRevision(brief + "tools: [charge]\n")
	if strings.Contains(node.do(http.MethodGet, "/v1/agents/a", "").body, "unavailableTools") || logged.String() != "" {
		t.Errorf("log of known tools: got %s, want none", logged.String())
	}
	node.publishRevision(brief + "tools: [charge, refund]\n")
	for _, path := range []string{"/v1/agents/a", "/v1/agents"} {
		a := node.do(http.MethodGet, path, "")
		if !strings.Contains(a.body, `"unavailableTools":["refund"]`) {
			t.Errorf("%s: body = %q, want text with %q", path, a.body, `"unavailableTools":["refund"]`)
		}
	}
	if !strings.Contains(logged.String(), `unknown tool \"refund\"`) {
		t.Errorf("log = %q, want text with %q", logged.String(), `unknown tool \"refund\"`)
	}
	if strings.Contains(logged.String(), "charge") {
		t.Errorf("log = %q, want no %q", logged.String(), "charge")
	}
}

// TestPublicationWarnings: a definition with unknown names is published, and the answer lists
// the names.
func TestPublicationWarnings(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) {
		c.Tools = missingTools{}
		c.Known = func() agents.Names {
			return agents.Names{Scripts: []string{"refund"}, Servers: []string{"shop"}}
		}
	})
	put := func(name, text string) []string {
		t.Helper()
		a := node.do(http.MethodPut, "/v1/agents/"+name, text)
		var published agentroutes.Agent
		if err := json.Unmarshal([]byte(a.body), &published); err != nil || a.status/100 != 2 {
			t.Fatalf("publication: got %d %s, want 2xx with warnings", a.status, a.body)
		}
		return published.Warnings
	}
	if w := put("b", "name: b\nmodel: scripted/refund\ntools: [charge, calculate, \"mcp:shop/*\", \"client:*\"]\n"); w != nil {
		t.Errorf("warnings about known names: got %q, want none", w)
	}
	want := []string{
		`/tools/0: unknown tool "chrage" (did you mean "charge"?)`, `/tools/1: unknown agent "nobody"`, `/tools/3: unknown MCP server "shp" (did you mean "shop"?)`,
		`/model: unknown model provider "opnai" (did you mean "openai"?)`,
	}
	if w := put("c", "name: c\nmodel: opnai/m\ntools: [chrage, \"agent:nobody\", \"agent:b\", \"mcp:shp/buy\"]\n"); !slices.Equal(w, want) {
		t.Errorf("warnings: got\n%q, want\n%q", w, want)
	}
	if w := put("e", "name: e\nworkflow: invoice\n"); w != nil {
		t.Errorf("warnings about a known program: got %q, want none", w)
	}
	want = []string{`/workflow: unknown program "invoce" (did you mean "invoice"?)`}
	if w := put("f", "name: f\nworkflow: invoce\n"); !slices.Equal(w, want) {
		t.Errorf("warnings are\n%q, want\n%q", w, want)
	}
	want = []string{`/steps/0/agent/model: unknown script "offers"`}
	if w := put("d", "name: d\nsteps: [{name: write, agent: {model: scripted/offers}}]\n"); !slices.Equal(w, want) {
		t.Errorf("warnings: got\n%q, want\n%q", w, want)
	}
}

// announcedModels are the names of a worker with a key for openai.
type announcedModels struct{ missingTools }

func (announcedModels) Known() agents.Names {
	return agents.Names{Tools: []string{"charge"}, Providers: []string{"openai", "scripted"}, Scripts: []string{"demo"}, Servers: []string{"shop"}}
}

// TestAgentsHaveWarnings: the answers about agents warn of names that no worker has, without a
// suggestion, because callers who may only run the agent may not know other names.
func TestAgentsHaveWarnings(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Tools = announcedModels{missingTools{"refund"}} })
	for text, want := range map[string][]string{
		"name: p\nmodel: openai/m\ntools: [charge, calculate, \"mcp:shop/*\", \"client:*\"]\n": nil,
		"name: q\nmodel: scripted/dem\n":                               {`/model: unknown script "dem"`},
		"name: r\nmodel: anthropic/m\n":                                {`/model: no worker is configured for the model provider "anthropic": set its API key`},
		"name: s\nmodel: openai/m\ntools: [\"mcp:shp/buy\", refund]\n": {`/tools/0: unknown MCP server "shp"`},
	} {
		name := text[len("name: "):len("name: p")]
		node.do(http.MethodPut, "/v1/agents/"+name, text).wantStatus(t, "publication of "+name, http.StatusCreated)
		var one agentroutes.Agent
		var list struct{ Items []agentroutes.Agent }
		for path, answer := range map[string]any{"/v1/agents/" + name: &one, "/v1/agents": &list} {
			if err := json.Unmarshal([]byte(node.do(http.MethodGet, path, "").body), answer); err != nil {
				t.Fatal(err)
			}
		}
		listed := list.Items[slices.IndexFunc(list.Items, func(a agentroutes.Agent) bool { return a.Name == name })]
		if !slices.Equal(one.Warnings, want) || !slices.Equal(listed.Warnings, want) {
			t.Errorf("warnings of %s = %q, in the list %q, want %q", name, one.Warnings, listed.Warnings, want)
		}
	}
}

// TestListHasProblemsOfDirectory: callers who may publish agents learn which definitions of the
// directory are not published. Other callers do not.
func TestListHasProblemsOfDirectory(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, func(c *api.Config) {
		c.Directory = func() agentroutes.Directory {
			file, err := agents.Parse("a.yaml", []byte(brief+"description: of the file\n"))
			if err != nil {
				t.Error(err)
			}
			return agentroutes.Directory{Agents: []*agents.Definition{file}, Problem: "b.yaml:4: wrong\nb.yaml:5: wrong"}
		}
	})
	admin := []string{"X-Tenant", "acme", "X-Subject", "root", "X-Role", policy.DefaultRoles.PlatformAdmin}
	node.do(http.MethodPut, "/v1/agents/a", brief, admin...).mustStatus(t, "publication", http.StatusOK)
	var list struct{ Problems []string }
	if err := json.Unmarshal([]byte(node.do(http.MethodGet, "/v1/agents", "", admin...).body), &list); err != nil {
		t.Fatal(err)
	}
	want := []string{"b.yaml:4: wrong", "b.yaml:5: wrong", "the file of a is not published, because another definition was published over HTTP: --agents-force publishes the file"}
	if !slices.Equal(list.Problems, want) {
		t.Errorf("problems = %q, want %q", list.Problems, want)
	}
	if a := node.do(http.MethodGet, "/v1/agents", "", "X-Tenant", "acme", "X-Subject", "ann"); strings.Contains(a.body, "problems") {
		t.Errorf("list for a member = %s, want no problems", a.body)
	}
}

// TestNotFoundNamesResource: a 404 names the unknown resource.
func TestNotFoundNamesResource(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.publishRevision(brief)
	for path, want := range map[string]string{
		"/v1/agents/nobody":                     `there is no agent "nobody"`,
		"/v1/agents/a/revisions/0123":           `the agent "a" has no revision "0123"`,
		"/v1/threads/t-404":                     `there is no thread "t-404"`,
		"/v1/threads/t-404/runs/r-404/events":   `the thread "t-404" has no run "r-404"`,
		"/v1/threads/t-404/events?follow=false": `there is no thread "t-404"`,
		"/v1/threads/t-404/messages":            `there is no thread "t-404"`,
		"/v1/thread/t":                          `there is no route "/v1/thread/t"`,
	} {
		if a := node.do(http.MethodGet, path, ""); a.status != http.StatusNotFound || a.problem.Detail != want {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
}

type revisions struct {
	Items      []agentroutes.Revision `json:"items"`
	NextCursor string                 `json:"nextCursor"`
}

// revisions returns a page of an agent's revisions.
func (n *node) revisions(query string) revisions {
	n.t.Helper()
	a := n.do(http.MethodGet, "/v1/agents/a/revisions"+query, "")
	var page revisions
	err := json.Unmarshal([]byte(a.body), &page)
	if err != nil {
		n.t.Fatalf("%s: %v", query, err)
	}
	a.mustStatus(n.t, query+": status", http.StatusOK)
	return page
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	node := setup(t)
	var want []string
	for i := range 4 {
		want = append(want, node.publishRevision(fmt.Sprintf("%sdescription: v%d\n", brief, i)))
	}
	want = append(want, node.publishRevision(brief+"description: v1\n")) // rolled back
	all := node.revisions("")
	mustEqual(t, "revisions: number of items", len(all.Items), 6)
	mustEqual(t, "revisions: cursor of the next page", all.NextCursor, "")
	for i, item := range all.Items[:5] {
		if item.Revision != want[4-i] || item.Source != "put" || item.Current != (i == 0) || item.PublishedAt.IsZero() {
			t.Errorf("item %d: got %+v, want %s", i, item, want[4-i])
		}
	}
	wantEqual(t, "source of the oldest revision", all.Items[5].Source, "directory")
	wantEqual(t, "oldest revision is current", all.Items[5].Current, false)
	for limit := 1; limit <= 7; limit++ {
		var got []agentroutes.Revision
		for cursor, pages := "", 0; ; pages++ {
			page := node.revisions(fmt.Sprintf("?limit=%d%s", limit, cursor))
			got = append(got, page.Items...)
			if len(page.Items) > limit {
				t.Errorf("limit %d: number of items = %v, want at most %v", limit, len(page.Items), limit)
			}
			if pages > 6 {
				t.Errorf("limit %d: number of pages = %v, want at most %v", limit, pages, 6)
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + page.NextCursor
		}
		if diff := cmp.Diff(all.Items, got); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=501", "?limit=x", "?cursor=x", "?cursor=-1"} {
		if a := node.do(http.MethodGet, "/v1/agents/a/revisions"+query, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: status = %v, want %v; body: %s", query, a.status, http.StatusBadRequest, a.body)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents/nobody/revisions", ""); a.problem.Code != "unknown_agent" {
		t.Errorf("unknown agent: problem code = %q, want %q", a.problem.Code, "unknown_agent")
	}
}

func TestRevisionInFull(t *testing.T) {
	t.Parallel()
	node := setup(t)
	revision := node.publishRevision(brief)
	node.publishRevision(brief + "description: newer\n")
	path := "/v1/agents/a/revisions/" + revision
	file := node.do(http.MethodGet, path, "", "Accept", "application/yaml")
	wantEqual(t, "status", file.status, http.StatusOK)
	wantEqual(t, "header Content-Type", file.header.Get("Content-Type"), "application/yaml")
	if !strings.Contains(file.body, "instructions: |\n  Be brief.\n  Be kind.\n") {
		t.Errorf("body = %q, want text with %q", file.body, "instructions: |\n  Be brief.\n  Be kind.\n")
	}
	again := node.publishRevision(file.body)
	wantEqual(t, "revision of the file published again", again, revision)
	for _, accept := range []string{"", "*/*", "application/json", "text/html, application/json;q=0.9"} {
		a := node.do(http.MethodGet, path, "", "Accept", accept)
		var d agents.Definition
		err := json.Unmarshal([]byte(a.body), &d)
		if err != nil {
			t.Fatalf("Accept %q: %v", accept, err)
		}
		wantEqual(t, fmt.Sprintf("Accept %q: instructions", accept), d.Instructions, "Be brief.\nBe kind.\n")
		wantEqual(t, fmt.Sprintf("Accept %q: header ETag", accept), a.header.Get("ETag"), `"`+revision+`"`)
	}
	for _, path := range []string{"/v1/agents/a/revisions/0000", "/v1/agents/a/revisions/0000/diff", path + "/diff?from=0000"} {
		if a := node.do(http.MethodGet, path, ""); a.status != http.StatusNotFound || a.problem.Code != "unknown_revision" {
			t.Errorf("%s: got %d %s, want %d unknown_revision", path, a.status, a.body, http.StatusNotFound)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents/nobody/revisions/"+revision, ""); a.problem.Code != "unknown_agent" {
		t.Errorf("unknown agent: problem code = %q, want %q", a.problem.Code, "unknown_agent")
	}
}

func TestRevisionDiff(t *testing.T) {
	t.Parallel()
	node := setup(t)
	taken := node.publishRevision("name: a\nmodel: test/m\n") // which the directory has published already
	if a := node.do(http.MethodGet, "/v1/agents/a/revisions/"+taken+"/diff", ""); !strings.HasPrefix(a.body, "--- /dev/null\n") || len(node.revisions("").Items) != 2 {
		t.Errorf("diff of a repeated publication: got\n%s\nwant a diff from nothing, and two revisions", a.body)
	}
	first := node.publishRevision(brief)
	second := node.publishRevision(strings.Replace(brief, "Be kind.", "Be fair.", 1))
	third := node.publishRevision(strings.Replace(brief, "Be kind.", "Be fair.", 1) + "tools: [charge]\n")
	header := func(from, to string) string { return "--- a@" + from + ".yaml\n+++ a@" + to + ".yaml\n" }
	changed := func(a, b string) string {
		return "@@ -2,7 +2,7 @@\n model: test/m\n instructions: |\n   Be brief.\n-  Be " + a + ".\n+  Be " + b + ".\n limits:\n   turns: 30\n   tokens: 400000\n"
	}
	diff := func(revision, query, want string) {
		t.Helper()
		a := node.do(http.MethodGet, "/v1/agents/a/revisions/"+revision+"/diff"+query, "")
		if d := cmp.Diff(want, a.body); d != "" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("diff of %s %s: %v (-want +got):\n%s", revision, query, a.header, d)
		}
	}
	diff(second, "", header(first, second)+changed("kind", "fair"))
	diff(first, "?from="+second, header(second, first)+changed("fair", "kind"))
	diff(second, "?from="+second, "")
	diff(third, "", header(second, third)+"@@ -3,6 +3,8 @@\n instructions: |\n   Be brief.\n   Be fair.\n+tools:\n+  - charge\n limits:\n   turns: 30\n   tokens: 400000\n")
	node.publishRevision(brief) // back to the first, which now replaces the third
	if a := node.do(http.MethodGet, "/v1/agents/a/revisions/"+first+"/diff", ""); !strings.HasPrefix(a.body, header(third, first)) {
		t.Errorf("diff of a rollback: got\n%s\nwant the prefix\n%s", a.body, header(third, first))
	}
	node.do(http.MethodPut, "/v1/agents/new", "name: new\nmodel: p/m\n")
	page := node.do(http.MethodGet, "/v1/agents/new", "")
	a := node.do(http.MethodGet, "/v1/agents/new/revisions/"+strings.Trim(page.header.Get("ETag"), `"`)+"/diff", "")
	if !strings.HasPrefix(a.body, "--- /dev/null\n+++ new@") {
		t.Errorf("body = %q, want prefix %q", a.body, "--- /dev/null\n+++ new@")
	}
	if !strings.Contains(a.body, "\n+model: p/m\n") {
		t.Errorf("body = %q, want text with %q", a.body, "\n+model: p/m\n")
	}
}
