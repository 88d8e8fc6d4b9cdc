package sockets

import (
	"encoding/json"
	"errors"
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
