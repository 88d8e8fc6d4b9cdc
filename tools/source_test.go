package tools_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/tools"
)

// shelf is a source with the given tools.
type shelf struct {
	name   string
	offers []tools.Offer
	err    error
}

func (s *shelf) Name() string                   { return s.name }
func (s *shelf) Origin() string                 { return s.name + ".yaml:1" }
func (s *shelf) Offers() ([]tools.Offer, error) { return s.offers, s.err }

// stock creates a source whose tools models may call by default.
func stock(t *testing.T, name string, own ...string) *shelf {
	t.Helper()
	s := &shelf{name: name}
	for _, o := range own {
		tool, err := tools.Guard(named(name + "_" + strings.ReplaceAll(o, "/", "-"))[0])
		if err != nil {
			t.Fatal(err)
		}
		s.offers = append(s.offers, tools.Offer{Name: o, Tool: tool})
	}
	return s
}

func TestSelectFromSources(t *testing.T) {
	t.Parallel()
	fixed, err := tools.NewRegistry(named("calculate", "search")...)
	if err != nil {
		t.Fatal(err)
	}
	away := &shelf{name: "away", err: errors.New("not connected yet")}
	registry, err := fixed.With(stock(t, "github", "fork", "repos/get", "search"), away, stock(t, "files", "search"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
		wantErr  string
	}{
		{"all of one", []string{"mcp:github/*"}, []string{"github_fork", "github_repos-get", "github_search"}, ""},
		{"one", []string{"mcp:github/search"}, []string{"github_search"}, ""},
		{"across slashes", []string{"mcp:github/re*t"}, []string{"github_repos-get"}, ""},
		{"from several, in the order of their names", []string{"mcp:*i*/search"}, []string{"files_search", "github_search"}, ""},
		{"in the requested order", []string{"mcp:github/search", "calculate", "mcp:github/*"}, []string{"github_search", "calculate", "github_fork", "github_repos-get"}, ""},
		{"not by patterns for others", []string{"*"}, []string{"calculate", "search"}, ""},
		{"not by models' names", []string{"github_*"}, nil, ""},
		{"none that matches", []string{"mcp:github/x*"}, nil, ""},
		{"unknown tool", []string{"mcp:github/nope"}, nil, `unknown tool "mcp:github/nope"`},
		{"unknown source", []string{"mcp:gitlab/*"}, nil, `unknown tool "mcp:gitlab/*"`},
		{"source that is not registered yet", []string{"mcp:away/*"}, nil, "mcp:away: not connected yet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			selected, err := registry.Select(tt.patterns)
			if got := errorText(err); got != tt.wantErr {
				t.Fatalf("error %q, want %q", got, tt.wantErr)
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
	if selected, _ := fixed.Select([]string{"mcp:*/*"}); len(selected) > 0 {
		t.Errorf("tools after With = %v, want the receiver unchanged", selected)
	}
}

// declared is a tool that declares its origin.
type declared struct{ foreign }

func (declared) Origin() string { return "shop.yaml:7" }

func TestErrorOfEqualNamesHasBothSources(t *testing.T) {
	t.Parallel()
	tool := func(name string) tools.Tool { return declared{foreign{spec: tools.Spec{Name: name}}} }
	_, err := tools.NewRegistry(slices.Concat(named("refund"), []tools.Tool{tool("refund")})...)
	if want := `tool "refund": two tools have this name: Go and shop.yaml:7`; errorText(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	fixed, err := tools.NewRegistry(tool("github_star"))
	if err != nil {
		t.Fatal(err)
	}
	for want, sources := range map[string][]tools.Source{
		`tool "github_star": shop.yaml:7: the name begins like the tools of github (github.yaml:1)`: {&shelf{name: "github"}},
		`tool "a": two tools have this name: a.yaml:1 and a.yaml:1`:                                 {&shelf{name: "a"}, &shelf{name: "b"}, &shelf{name: "a"}},
		`tool "a_b": the name of a source must be 1 to 32 of a-z, 0-9 and -, and begin with a letter or digit`: {
			&shelf{name: "a_b"},
		},
	} {
		if _, err := fixed.With(sources...); errorText(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// errorText returns the text of an error; "" = none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
