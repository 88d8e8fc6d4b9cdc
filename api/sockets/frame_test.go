package sockets

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// FuzzDecodeRequest: a frame is read or refused, and a refusal is short, whatever it is about.
func FuzzDecodeRequest(f *testing.F) {
	for _, frame := range []string{
		`{"type":"run","id":"1","agent":"a","input":{"threadId":"t"}}`, `{"type":"subscribe","id":"1","threadId":"t","runId":null,"follow":false}`,
		`{"ID":"1","id":2}`, `{"id":` + strings.Repeat("9", 2000) + `}`, `{"id":"\ud800"}`, `[]`, `null`, `{"message":{"id":{}},"runId":7}`, "\xff",
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := decodeRequest(frame)
		if err == nil {
			if r.ID == "" || len(r.ID) > stream.MaxIDBytes {
				t.Errorf("the id %q was taken", r.ID)
			}
			_, _ = r.run(auth.With(t.Context(), auth.Principal{Tenant: "t"}))
			return
		}
		body, err := json.Marshal(refuse(r, problem.Of(err)))
		if err != nil || len(body) > 6*stream.MaxIDBytes+500 {
			t.Errorf("the refusal has %d bytes, %v", len(body), err)
		}
	})
}

// The scope of an approval is read in a frame as in a decision.
func TestRememberScopesInFrames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`true`: "arguments", `"tool"`: "tool", `null`: "", `"thread"`: "?", `1`: "?"} {
		r, err := decodeRequest([]byte(`{"type":"decide","id":"1","decision":"approve","remember":` + text + `}`))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		v, err := r.decision()
		p, refused := errors.AsType[*problem.Problem](err)
		if refused != (want == "?") || refused && (p.Code != "invalid_answer" || p.Pointer != "/remember") || !refused && string(v.Remember) != want {
			t.Errorf("%s: %q, %v", text, v.Remember, err)
		}
	}
}

// An error frame has every member of a problem, except those of RFC 9457 that a frame has no use
// for, and the mistakes in a definition, which no frame publishes.
func TestARefusalHasTheMembersOfAProblem(t *testing.T) {
	t.Parallel()
	p := problem.Problem{
		Type: "about:blank", Title: "Conflict", Status: 409, Code: "interrupted", Detail: "detail", Pointer: "/input", Errors: []problem.Mistake{{Detail: "x"}},
		ActiveRun: "r1", PendingToolCallIDs: []string{"c1"}, Recorded: "recorded", Counted: true, RetryAfter: 1, Challenge: "Bearer",
	}
	if fields := reflect.ValueOf(p); true {
		for i := range fields.NumField() {
			if fields.Field(i).IsZero() {
				t.Fatalf("the test does not set %s", fields.Type().Field(i).Name)
			}
		}
	}
	members := func(v any) (m map[string]any) {
		body, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	sent := members(refuse(&clientFrame{ID: "1"}, &p))
	for name, want := range members(p) {
		if name != "type" && name != "title" && name != "errors" && !reflect.DeepEqual(sent[name], want) {
			t.Errorf("the frame has %s %v, want %v", name, sent[name], want)
		}
	}
}
