package agui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThinkingUpgrade(t *testing.T) {
	t.Parallel()
	var u ThinkingUpgrade
	for _, tt := range []struct{ in, want string }{
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`},
		{`{"type":"THINKING_START","title":"Working","timestamp":7,"metadata":{"k":1}}`, `{"type":"REASONING_START","messageId":"thinking-r-1","timestamp":7,"metadata":{"k":1}}`},
		{`{"type":"THINKING_TEXT_MESSAGE_START","rawEvent":1}`, `{"type":"REASONING_MESSAGE_START","messageId":"thinking-r-2","role":"reasoning","rawEvent":1}`},
		{`{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"a","subagentRunId":"s"}`, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"thinking-r-2","delta":"a","subagentRunId":"s"}`},
		{`{"type":"THINKING_TEXT_MESSAGE_END"}`, `{"type":"REASONING_MESSAGE_END","messageId":"thinking-r-2"}`},
		{`{"type":"THINKING_TEXT_MESSAGE_START"}`, `{"type":"REASONING_MESSAGE_START","messageId":"thinking-r-3","role":"reasoning"}`},
		{`{"type":"THINKING_TEXT_MESSAGE_END"}`, `{"type":"REASONING_MESSAGE_END","messageId":"thinking-r-3"}`},
		{`{"type":"THINKING_END","x":1}`, `{"type":"REASONING_END","messageId":"thinking-r-1","x":1}`},
		{`{"type":"THINKING_ALOUD"}`, `{"type":"THINKING_ALOUD"}`},
		{`{"type":"RUN_STARTED","threadId":"t","runId":"q"}`, `{"type":"RUN_STARTED","threadId":"t","runId":"q"}`},
		{`{"type":"THINKING_END"}`, `{"type":"REASONING_END","messageId":"thinking-q-1"}`}, // nothing is open: the verifier refuses it
	} {
		e, warnings, err := u.Upgrade(decode(t, tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(encode(t, e))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
		if changed := e.EventType() != TypeOf([]byte(tt.in)); changed != (len(warnings) == 1) {
			t.Errorf("%s: warnings = %v, want one if the event changed", tt.in, warnings)
		}
	}
	_, _, err := u.Upgrade(decode(t, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":7}`))
	checkDecodeError(t, "a delta that is none", err, "/delta", "must be a string")
}
