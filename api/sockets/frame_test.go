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

// FuzzDecodeRequest checks that any frame is decoded or refused, and that a refusal is short.
func FuzzDecodeRequest(f *testing.F) {
	for _, frame := range []string{
		`{"type":"run","id":"1","agent":"a","input":{"threadId":"t"}}`, `{"type":"subscribe","id":"1","threadId":"t","runId":null,"follow":false}`,
		`{"ID":"1","id":2}`, `{"id":` + strings.Repeat("9", 2000) + `}`, `{"id":"\ud800"}`, `[]`, `null`, `{"message":{"id":{}},"runId":7}`, "\xff",
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := decodeFrame(frame)
		if err == nil {
			if r.ID == "" || len(r.ID) > stream.MaxIDBytes {
				t.Errorf("accepted ID = %q, want 1 to %d bytes", r.ID, stream.MaxIDBytes)
			}
			_, _ = r.run(auth.With(t.Context(), auth.Principal{Tenant: "t"}))
			return
		}
		body, err := json.Marshal(refusalOf(r, problem.Of(err)))
		if err != nil || len(body) > 6*stream.MaxIDBytes+500 {
			t.Errorf("refusal: got %d bytes, %v, want at most %d", len(body), err, 6*stream.MaxIDBytes+500)
		}
	})
}

// TestRepeatedMembersOfFrames: a frame, or an object in it, with two members of one name is refused.
func TestRepeatedMembersOfFrames(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]string{
		`{"type":"ping","id":"1","type":"cancel"}`:                                                 "/type",
		`{"type":"ping","id":"1","id":"2"}`:                                                        "/id",
		`{"type":"decide","id":"1","decision":"edit","args":{"to":"ann","cc":["bob"],"to":"eve"}}`: "/args/to",
	} {
		_, err := decodeFrame([]byte(frame))
		p, ok := errors.AsType[*problem.Problem](err)
		if !ok || p.Code != "invalid_frame" || p.Pointer != want || p.Detail != "appears twice" {
			t.Errorf("%s: got %v, want invalid_frame at %s", frame, err, want)
		}
	}
}

// TestRememberScopesInFrames: the scope of an approval is parsed in a frame as in a decision.
func TestRememberScopesInFrames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`true`: "arguments", `"tool"`: "tool", `null`: "", `"thread"`: "?", `1`: "?"} {
		r, err := decodeFrame([]byte(`{"type":"decide","id":"1","decision":"approve","remember":` + text + `}`))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		v, err := r.decision()
		p, refused := errors.AsType[*problem.Problem](err)
		if refused != (want == "?") || refused && (p.Code != "invalid_answer" || p.Pointer != "/remember") || !refused && string(v.Remember) != want {
			t.Errorf("%s: got the scope %q, %v, want %q", text, v.Remember, err, want)
		}
	}
}

// TestErrorFrameHasMembersOfProblem: an error frame has every member of a problem, except the RFC
// 9457 members that a frame does not need, the parameter of a query, which frames do not have, the
// mistakes of a definition, which frames do not publish, and fork points, which frames do not name.
func TestErrorFrameHasMembersOfProblem(t *testing.T) {
	t.Parallel()
	p := problem.Problem{
		Type: "about:blank", Title: "Conflict", Status: 409, Code: "interrupted", Detail: "detail", Pointer: "/input", Parameter: "after", Errors: []problem.Mistake{{Detail: "x"}},
		ForkPoints: []string{"x"}, ActiveRun: "r1", PendingToolCallIDs: []string{"c1"}, Recorded: "recorded", Counted: true, Rule: "owner", Quota: "runs", Limit: 1, Used: 1,
		RateLimit: "r", RateLimitPolicy: "p", RetryAfter: 1, Challenge: "Bearer",
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
	sent := members(refusalOf(&clientFrame{ID: "1"}, &p))
	for name, want := range members(p) {
		if name != "type" && name != "title" && name != "errors" && name != "forkPoints" && name != "parameter" && !reflect.DeepEqual(sent[name], want) {
			t.Errorf("%s of the frame: got %v, want %v", name, sent[name], want)
		}
	}
}
