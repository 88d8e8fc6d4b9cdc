package decisions

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/runs"
)

// TestRememberScopes: the scope of an approval is parsed alike in decisions and in entries of
// resume.
func TestRememberScopes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`true`: "arguments", `"arguments"`: "arguments", `"tool"`: "tool", `false`: "", `null`: "",
		`"thread"`: "?", `""`: "?", `1`: "?", `{}`: "?",
	} {
		var alone Request
		if err := json.Unmarshal([]byte(`{"decision":"approve","remember":`+text+`}`), &alone); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		resumed, resumedErr := requestOf(&agui.Interrupt{}, agui.ResumeEntry{Status: agui.ResumeResolved, Payload: []byte(`{"approved":true,"remember":` + text + `}`)}, "/resume/0")
		for at, got := range map[string]struct {
			scope Remember
			err   error
		}{
			"/resume/0/payload/remember": {resumed.Remember, resumedErr}, "/at/remember": {alone.Remember, alone.Check("/at")},
		} {
			p, refused := errors.AsType[*problem.Problem](got.err)
			if refused != (want == "?") || refused && (p.Code != "invalid_answer" || p.Pointer != at) || !refused && string(got.scope) != want {
				t.Errorf("%s at %s: got the scope %q, %v, want %q", text, at, got.scope, got.err, want)
			}
		}
	}
	for _, d := range []runs.DecisionKind{runs.DecisionEdit, runs.DecisionReject, runs.DecisionAnswer} {
		v := Request{Decision: string(d), Args: []byte(`{}`), Content: []byte(`"x"`), Remember: "tool"}
		if p, ok := errors.AsType[*problem.Problem](v.Check("")); !ok || p.Pointer != "/remember" {
			t.Errorf("%s with a scope: got %v, want a problem with the pointer /remember", d, p)
		}
	}
}
