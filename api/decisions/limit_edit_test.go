package decisions

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// TestLimitEditSetsLimit: an edit of a limit interrupt sets a new limit, in any JSON form of the
// number.
func TestLimitEditSetsLimit(t *testing.T) {
	t.Parallel()
	const arguments = `{"limit":"costPerDay","used":2,"allowed":3.5,"currency":"EUR","date":"2026-01-31"}`
	for _, c := range []struct {
		name, args        string
		root, wantPointer string
	}{
		{"as text", `{"allowed":"12.50"}`, "", ""},
		{"as a number", `{"allowed":12.5}`, "", ""},
		{"among the others", `{"limit":"costPerDay","used":2,"allowed":12.5,"currency":"EUR","date":"2026-01-31"}`, "", ""},
		{"too small", `{"allowed":2}`, "", "/args/allowed"},
		{"malformed", `{"allowed":true}`, "/resume/0/payload", "/resume/0/payload/editedArgs/allowed"},
		{"null", `{"allowed":null}`, "", "/args/allowed"},
		{"missing", `{}`, "", "/args/allowed"},
		{"another figure", `{"allowed":5,"used":0}`, "", "/args"},
		{"another member", `{"allowed":5,"turns":1}`, "", "/args"},
	} {
		by, err := json.Marshal(stream.ApprovalSource{Step: pipeline.LimitPath})
		if err != nil {
			t.Fatal(err)
		}
		interrupt := &agui.Interrupt{ID: "i", ToolCallID: "c", Metadata: agui.Metadata{stream.MetadataApproval: by}}
		thread := &snapshot.Snapshot{Entries: []snapshot.Entry{{Message: agui.Message{ToolCalls: []agui.ToolCall{{ID: "c", Name: "approve", Arguments: arguments}}}}}}
		v, err := Request{Decision: "edit", Args: json.RawMessage(c.args)}.withLimitArguments(thread, interrupt, c.root)
		var p *problem.Problem
		switch {
		case c.wantPointer == "" && (err != nil || v.allowed != 12_500_000 || string(v.Args) != strings.Replace(arguments, "3.5", "12.5", 1)):
			t.Errorf("%s: got %s, allowed %d, %v, want 12500000 allowed", c.name, v.Args, v.allowed, err)
		case c.wantPointer != "" && (!errors.As(err, &p) || p.Status != 422 || p.Code != "invalid_answer" || p.Pointer != c.wantPointer):
			t.Errorf("%s: got %v, want a problem at %s", c.name, err, c.wantPointer)
		}
		by, err = json.Marshal(stream.ApprovalSource{Step: "pay"})
		if err != nil {
			t.Fatal(err)
		}
		call := &agui.Interrupt{ID: "i", ToolCallID: "c", Metadata: agui.Metadata{stream.MetadataApproval: by}}
		if v, err := (Request{Decision: "edit", Args: json.RawMessage(c.args)}).withLimitArguments(thread, call, ""); err != nil || v.allowed != 0 || string(v.Args) != c.args {
			t.Errorf("edit of another call: got %+v, %v, want its arguments", v, err)
		}
		for _, decision := range []string{"approve", "reject"} {
			if v, err := (Request{Decision: decision}).withLimitArguments(thread, interrupt, ""); err != nil || v.allowed != 0 || v.Args != nil {
				t.Errorf("%s: got %+v, %v, want no arguments", decision, v, err)
			}
		}
	}
}
