package runs

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestVerifyStreams: an error of the reference clients names the test, the event and the reason.
func TestVerifyStreams(t *testing.T) {
	t.Parallel()
	const (
		started  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
		finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
		opens    = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
		says     = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel"}`
		ends     = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
		forgets  = `{"type":"MESSAGES_SNAPSHOT","messages":[]}`
		called   = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`
		calls    = `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{"}`
		returns  = `{"type":"TOOL_CALL_END","toolCallId":"c"}`
	)
	for name, tt := range map[string]struct {
		events []string
		want   []string // empty = no error
	}{
		"good":                   {events: []string{started, opens, says, ends, finished}},
		"a retracted call":       {events: []string{started, called, calls, forgets, returns, forgets, finished}},
		"not to the end":         {events: []string{started, opens, says}},
		"begins in the middle":   {events: []string{says, ends, finished}},
		"no event of the schema": {[]string{started, `{"type":"TEXT_MESSAGE_START","messageId":1}`, finished}, []string{"event 1 does not fit"}},
		"open at the end":        {[]string{started, opens, says, finished}, []string{"refuses the stream at event 3"}},
		"begun twice":            {[]string{started, opens, says, opens, ends, finished}, []string{"refuses the stream at event 3", "already in progress"}},
		"warned of":              {[]string{started, opens, says, forgets, ends, finished}, []string{"console message at event 4", "TEXT_MESSAGE_END"}},
		"wrong when compacted": {
			[]string{started, opens, says, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":""}]}`, says, ends, finished},
			[]string{"compacted: messages", `string("Hel")`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{"", "1.0"} {
				r, err := kit.NewRecorder(filepath.Join(t.TempDir(), "streams"))
				if err != nil {
					t.Fatal(err)
				}
				f := &kit.Follower{In: kit.Input{ProtocolVersion: version}}
				for _, e := range tt.events {
					e := kit.Event{Data: json.RawMessage(e)}
					e.Type = e.Member("type")
					f.Events = append(f.Events, e)
				}
				for range 2 {
					if err := r.Add(t.Name(), f); err != nil {
						t.Fatal(err)
					}
				}
				n, err := r.Verify(kit.ReferenceClients)
				if want := f.Events[0].Type == "RUN_STARTED"; n > 1 || (n == 1) != want {
					t.Errorf("version %q: number of streams = %d, want 1 if it begins with RUN_STARTED", version, n)
				}
				if (err == nil) != (tt.want == nil) {
					t.Fatalf("version %q: %v, want %q", version, err, tt.want)
				}
				if err == nil {
					continue
				}
				for _, want := range append(tt.want, t.Name(), f.In.Generation().Name) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("version %q: error: want %q, got %v", version, want, err)
					}
				}
			}
		})
	}
}
