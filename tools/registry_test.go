package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/tools"
)

// foreign is a tool that enforces none of the package's rules itself.
type foreign struct {
	spec tools.Spec
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (f foreign) Spec() tools.Spec { return f.spec }

func (f foreign) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return f.call(ctx, call)
}

// named returns tools with names.
func named(names ...string) []tools.Tool {
	var all []tools.Tool
	for _, name := range names {
		all = append(all, foreign{spec: tools.Spec{Name: name}})
	}
	return all
}

func TestSelect(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(named("github_star", "calculate", "github_fork", "current_time")...)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
	}{
		{"nothing", nil, nil},
		{"in the requested order", []string{"current_time", "calculate"}, []string{"current_time", "calculate"}},
		{"glob by name", []string{"github_*"}, []string{"github_fork", "github_star"}},
		{"each once", []string{"calculate", "*c*", "calculate"}, []string{"calculate", "current_time"}},
		{"all", []string{"*"}, []string{"calculate", "current_time", "github_fork", "github_star"}},
		{"glob without a match", []string{"mail_*"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			selected, err := registry.Select(tt.patterns)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range selected {
				got = append(got, tool.Spec().Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectUnknown(t *testing.T) {
	t.Parallel()
	registry, err := tools.NewRegistry(named("calculate")...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = registry.Select([]string{"calculate", "Calculate", "client:open_map"})
	unknown := (*tools.UnknownToolError)(nil)
	if !errors.As(err, &unknown) || unknown.Name != "Calculate" || !strings.Contains(err.Error(), `"client:open_map"`) {
		t.Errorf("got %v, want both unknown names", err)
	}
	if _, err := registry.Select([]string{"calc[u*"}); err == nil {
		t.Error("pattern with other wildcards: got no error, want one")
	}
	if _, ok := registry.Lookup("calc*"); ok {
		t.Error("Lookup took a pattern")
	}
}

func TestNewRegistryRefuses(t *testing.T) {
	t.Parallel()
	type loop struct{ Next *loop }
	noop := func(context.Context, struct{}) (string, error) { return "", nil }
	schema := func(s string) tools.Tool {
		return foreign{spec: tools.Spec{Name: "t", Parameters: json.RawMessage(s)}}
	}
	tests := []struct {
		name  string
		tools []tools.Tool
		want  string
	}{
		{"nil", []tools.Tool{nil}, "nil"},
		{"clash", named("a", "b", "a"), `tool "a": two tools have`},
		{"no name", named(""), "the name must be"},
		{"bad name", named("mcp:a/b"), "the name must be"},
		{"long name", named(strings.Repeat("a", 65)), "the name must be"},
		{"bad name of a function", []tools.Tool{tools.Func("a b", "", noop)}, "the name must be"},
		{"negative timeout", []tools.Tool{tools.Func("a", "", noop, tools.Timeout(-1))}, "timeout"},
		{"many attempts", []tools.Tool{tools.Func("a", "", noop, tools.Idempotent(), tools.Attempts(9))}, "1 to 8"},
		{"attempts of a tool that must not be repeated", []tools.Tool{tools.Func("a", "", noop, tools.Attempts(2))}, "idempotent"},
		{"tiny result", []tools.Tool{tools.Func("a", "", noop, tools.MaxResult(10))}, "1024 bytes"},
		{"arguments that are no object", []tools.Tool{tools.Func("a", "", func(context.Context, string) (string, error) { return "", nil })}, "must be a struct or a map"},
		{"recursive arguments", []tools.Tool{tools.Func("a", "", func(context.Context, loop) (string, error) { return "", nil })}, "cycle"},
		{"no JSON", []tools.Tool{schema("{")}, "not valid JSON"},
		{"no schema", []tools.Tool{schema(`{"type":"objekt"}`)}, "the parameters are not a valid schema"},
		{"reference to a file", []tools.Tool{schema(`{"$ref":"file:///etc/passwd"}`)}, "file:///etc/passwd"},
		{"relative reference", []tools.Tool{schema(`{"$ref":"other.json"}`)}, "other.json"},
		{"large schema", []tools.Tool{schema(`{"description":"` + strings.Repeat("x", 300<<10) + `"}`)}, "larger than"},
		{"several", append(named("a b"), schema("{")), "the name must be"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.NewRegistry(tt.tools...)
			wrong := (*tools.SpecError)(nil)
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a *SpecError with %q", err, tt.want)
			}
		})
	}
}

func TestSchemasAreNeverLoaded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was requested", r.URL)
	}))
	defer server.Close()
	for _, schema := range []string{
		`{"$ref":"` + server.URL + `/a.json"}`,
		`{"$schema":"` + server.URL + `/meta.json"}`,
		`{"$id":"` + server.URL + `/","properties":{"a":{"$ref":"b.json"}}}`,
	} {
		if _, err := tools.CompileSchema(json.RawMessage(schema)); err == nil {
			t.Errorf("schema %s: got no error, want one", schema)
		}
	}
}

func TestRegistryGuards(t *testing.T) {
	t.Parallel()
	down := errors.New("broker is down")
	const cut = "\n[truncated: the full text has 2000 bytes]"
	tests := []struct {
		name      string
		arguments string
		call      func(context.Context, tools.Call) (tools.Result, error)
		want      tools.Result
		wantErr   error
	}{
		{
			name: "arguments are checked", arguments: `{"n":"1"}`,
			want: tools.Result{Content: "invalid arguments: /n: expected integer, got string", IsError: true},
		},
		{
			name: "empty arguments arrive as an object",
			call: func(_ context.Context, call tools.Call) (tools.Result, error) {
				return tools.Result{Content: string(call.Arguments)}, nil
			},
			want: tools.Result{Content: "{}"},
		},
		{
			name: "a panic is caught",
			call: func(context.Context, tools.Call) (tools.Result, error) { panic("boom") },
			want: tools.Result{Content: "t failed: internal error", IsError: true},
		},
		{
			name: "results are bounded",
			call: func(context.Context, tools.Call) (tools.Result, error) {
				return tools.Result{Content: strings.Repeat("x", 2000)}, nil
			},
			want: tools.Result{Content: strings.Repeat("x", 1024-len(cut)) + cut},
		},
		{
			name:    "infrastructure is an error",
			call:    func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, down },
			wantErr: down,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			registry, err := tools.NewRegistry(foreign{
				spec: tools.Spec{Name: "t", Parameters: json.RawMessage(`{"properties":{"n":{"type":"integer"}}}`), MaxResult: 1024, Timeout: time.Minute},
				call: tt.call,
			})
			if err != nil {
				t.Fatal(err)
			}
			tool, _ := registry.Lookup("t")
			got, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(tt.arguments)})
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("got %v, want %v", err, tt.wantErr)
			}
			if got.Content != tt.want.Content || got.IsError != tt.want.IsError {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSchemaProblems(t *testing.T) {
	t.Parallel()
	schema, err := tools.CompileSchema(json.RawMessage(`{
		"properties": {
			"size": {"enum": ["s", "l"]},
			"count": {"type": "integer", "minimum": 1},
			"who": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
			"old": false,
			"tree": {"$ref": "#/$defs/node"}
		},
		"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, arguments, want string }{
		{"enum", `{"size":"m"}`, "/size: value must be one of 's', 'l'"},
		{"range", `{"count":0}`, "/count: minimum: got 0, want 1"},
		{"alternatives", `{"who":true}`, "/who: expected integer, got boolean; /who: expected string, got boolean; /who: fits none, or too many, of the alternatives"},
		{"forbidden", `{"old":1}`, "/old: is not allowed"},
		{"through references", `{"tree":{"next":{"next":3}}}`, "/tree/next/next: expected object, got number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := schema.Validate(json.RawMessage(tt.arguments))
			if err == nil || err.Error() != "invalid arguments: "+tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if err := schema.Validate(json.RawMessage(`{"size":"s","count":2.0,"who":1,"tree":{"next":{}},"else":1}`)); err != nil {
		t.Errorf("valid arguments were refused: %v", err)
	}
}
