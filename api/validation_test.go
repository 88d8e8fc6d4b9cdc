package api_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/api/problem"
)

// TestValidation: a check finds the mistakes and the unknown names of a definition with their
// places, and changes nothing.
func TestValidation(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) {
		c.Tools = missingTools{}
		c.Known = func() agents.Names { return agents.Names{Providers: []string{"test"}} }
	})
	d, err := agents.Parse("", []byte(brief))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body, contentType string
		want              agentroutes.Validation
	}{
		"valid": {body: brief, want: agentroutes.Validation{Valid: true, Revision: d.Revision()}},
		"an unknown name": {body: brief + "tools:\n  - calculate\n  - refund\n", want: agentroutes.Validation{
			Valid: true, Warnings: []problem.Mistake{{Pointer: "/tools/1", Line: 8, Column: 5, Detail: `/tools/1: unknown tool "refund"`}},
		}},
		"an unknown name in JSON": {body: "{\"name\": \"a\", \"model\": \"test/m\",\n \"tools\": [\"refund\"]}", contentType: "application/json", want: agentroutes.Validation{
			Valid: true, Warnings: []problem.Mistake{{Pointer: "/tools/0", Line: 2, Column: 12, Detail: `/tools/0: unknown tool "refund"`}},
		}},
		"mistakes": {body: "name: a\nmodell: p/m\n", want: agentroutes.Validation{Errors: []problem.Mistake{
			{Pointer: "/model", Line: 1, Column: 1, Detail: "model is missing"},
			{Pointer: "/modell", Line: 2, Column: 1, Detail: `unknown key "modell" (did you mean "model"?)`},
		}}},
		"a misspelled tool that a step names": {
			body: "name: a\nmodel: test/m\ntools:\n  - current_time\n  - calculatee\nsteps:\n  - {name: x, tool: calculate}\n  - {name: y, tool: calculate}\n  - {name: z, tool: other}\n",
			want: agentroutes.Validation{Errors: []problem.Mistake{
				{Pointer: "/tools/1", Line: 5, Column: 5, Detail: `/tools/1: unknown tool "calculatee" (did you mean "calculate"?)`},
				{Pointer: "/steps/2/tool", Line: 9, Column: 21, Detail: `steps[2].tool "other" is not one of the agent's tools`},
			}},
		},
		"a misspelled tool of a step": {
			body: "name: a\nmodel: test/m\ntools: [calculate]\nsteps: [{name: x, tool: calculatee}]\n",
			want: agentroutes.Validation{Errors: []problem.Mistake{
				{Pointer: "/steps/0/tool", Line: 4, Column: 25, Detail: `steps[0].tool "calculatee" is not one of the agent's tools (did you mean "calculate"?)`},
			}},
		},
		"no YAML": {body: "name: [", want: agentroutes.Validation{Errors: []problem.Mistake{{Line: 1}}}},
	} {
		a := node.do(http.MethodPost, "/v1/agents/validate", tt.body, "Content-Type", cmp.Or(tt.contentType, "application/yaml"))
		a.mustStatus(t, name, http.StatusOK)
		var got agentroutes.Validation
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Valid != (len(got.Definition) > 0) {
			t.Errorf("%s: definition %q, want one only if it is valid", name, got.Definition)
		}
		if tt.want.Revision == "" {
			got.Revision = ""
		}
		if name == "no YAML" && len(got.Errors) == 1 {
			got.Errors[0].Detail, got.Errors[0].Column = "", 0 // the text of the parser
		}
		if diff := gocmp.Diff(tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agentroutes.Validation{}, "Definition")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents/a/revisions", ""); strings.Count(a.body, "publishedAt") != 1 {
		t.Errorf("revisions: got %s, want the one from before", a.body)
	}
	node.do(http.MethodPost, "/v1/agents/validate", brief, "Content-Type", "text/html").wantProblem(t, "another type", http.StatusUnsupportedMediaType, "unsupported_media_type")
}

// TestValidationNeedsPermission: only those who may publish an agent learn which names the server
// knows. A tenant's agent is checked by what policies permit it to use.
func TestValidationNeedsPermission(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	text := clerkOf("x") + "tools: [calculate, charge]\n"
	check := func(scope string, header []string) answer {
		return f.do(http.MethodPost, "/v1/agents/validate"+scope, text, append([]string{"Content-Type", "application/yaml"}, header...)...)
	}
	check("?scope=tenant", headersOf("eve")).wantProblem(t, "a user", http.StatusForbidden, "forbidden")
	check("", alphaAdmin).wantProblem(t, "a tenant's administrator, for all", http.StatusForbidden, "forbidden")
	a := check("?scope=tenant", alphaAdmin)
	a.mustStatus(t, "a tenant's administrator", http.StatusOK)
	if !strings.Contains(a.body, `"valid":false,"errors":[{"pointer":"/tools/1","line":4,"column":20,"detail":"`) {
		t.Errorf("a tool that tenants may not use: got %s, want an error with its place", a.body)
	}
}

// TestSchemaIsServed: the schema of definitions is JSON.
func TestSchemaIsServed(t *testing.T) {
	t.Parallel()
	a := setup(t).do(http.MethodGet, "/v1/schemas/agent", "")
	a.mustStatus(t, "schema", http.StatusOK)
	if !json.Valid([]byte(a.body)) || !strings.Contains(a.body, "onMissingToolResult") {
		t.Errorf("schema: got %.200s, want the one of agents", a.body)
	}
}
