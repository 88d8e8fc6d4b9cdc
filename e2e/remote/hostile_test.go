package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestHostileRemote: what a remote agent chooses itself, such as IDs and names of models, is bounded in
// histories, and has no content there. The run ends in any case.
func TestHostileRemote(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	var usages, calls []string
	for n := range 1000 {
		usages = append(usages, fmt.Sprintf(`{"provider":"p%d","model":"m%d%s","outputTokens":9007199254740991}`, n, n, strings.Repeat("y", 200)))
	}
	for n := range 200 {
		calls = append(calls, callEvents(fmt.Sprintf("%096d", n))...)
	}
	for name, c := range map[string]struct {
		events []string
		usage  string // of RUN_FINISHED
		code   string // of RUN_ERROR; "" = RUN_FINISHED
		// version is the protocolVersion of RUN_STARTED; "" = none.
		version string
	}{
		"content as message ID": {events: textEvents(kit.Mark + " says")},
		"long message ID":       {events: textEvents(long)},
		"content as call ID":    {events: callEvents(kit.Mark + " says")},
		"long call ID":          {events: callEvents(long)},
		"calls that fit":        {events: calls[:2*16]},
		"many calls":            {events: calls, code: "limit_parallel_tools"},
		"many models":           {events: textEvents("m1"), usage: strings.Join(usages, ",")},
		"content as version":    {events: textEvents("m1"), version: kit.Mark},
		"content as a type":     {events: append([]string{`{"type":"` + kit.Mark + `","value":1}`}, textEvents("m1")...), version: "1.0"},
		"content as a member":   {events: append([]string{`{"type":"CUSTOM","name":"x","value":1,"` + kit.Mark + `":1}`}, textEvents("m1")...), version: "1.0"},
		"content as old type":   {events: append([]string{`{"type":"` + kit.Mark + `","value":1}`}, textEvents("m1")...)},
		"content as bad type":   {events: []string{`{"type":"` + kit.Mark + `","deep":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`}, code: "remote_protocol_error"},
		"content as step":       {events: []string{`{"type":"STEP_STARTED","stepName":"` + kit.Mark + `"}`, `{"type":"STEP_FINISHED","stepName":"` + kit.Mark + `"}`}},
		"content as tool":       {events: []string{`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"` + kit.Mark + `"}`, `{"type":"TOOL_CALL_END","toolCallId":"c1"}`}},
		"malformed patch":       {events: append([]string{`{"type":"STATE_DELTA","delta":[{"op":"` + kit.Mark + `","path":"` + kit.Mark + `"}]}`}, textEvents("m1")...)},
		"long model":            {events: textEvents("m1"), usage: `{"provider":"` + long + `","model":"` + long + `","totalTokens":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startFlakyServer(t)
			s.handle("/", func(e *exchange) {
				ids := `"threadId":` + kit.Quote(e.in.ThreadID) + `,"runId":` + kit.Quote(e.in.RunID)
				started := `{"type":"RUN_STARTED",` + ids
				if c.version != "" {
					started += `,"protocolVersion":"` + c.version + `"`
				}
				e.emit(started + `}`)
				if e.n > 1 { // with the results of the calls
					e.emit(textEvents("m9")...)
				} else {
					e.emit(c.events...)
				}
				e.emit(`{"type":"RUN_FINISHED",` + ids + `,"usage":[` + c.usage + `]}`)
			})
			p := startWith(t, "name: afar\nremote: {url: "+s.URL+"/}\nlimits: {parallelTools: 512}\n")
			in := kit.NewInput(kit.Marked("Are you there?"))
			in.Tools = []any{map[string]any{"name": "show", "description": "Shows.", "parameters": map[string]any{"type": "object"}}}
			f := p.FollowAgent(t, "/v1/agents/afar/runs", in)
			f.Finish(t)
			if last := f.Events[len(f.Events)-1]; last.Member("code") != c.code || c.code == "" && last.Type != "RUN_FINISHED" {
				t.Errorf("end of the run = %.500s, want the code %q", last.Data, c.code)
			}
			next := in
			next.RunID, next.Messages = "run-2", kit.ShownMessages(t, in.Messages, f.Events)
			for _, call := range pendingCalls(t, f) {
				next.Messages = append(next.Messages, kit.Message{ID: "result of " + call, Role: "tool", ToolCallID: call, Content: "shown"})
			}
			if len(next.Messages) > 1 && next.Messages[len(next.Messages)-1].Role == "tool" {
				g := p.FollowAgent(t, "/v1/agents/afar/runs", next)
				g.Finish(t)
				kit.WantOutcome(t, g, "success")
			}
		})
	}
}

// pendingCalls returns the calls that wait for the client at the end of a run.
func pendingCalls(t *testing.T, f *kit.Follower) []string {
	t.Helper()
	return decode[struct {
		Outcome struct{ PendingToolCallIDs []string }
	}](t, f.Events[len(f.Events)-1].Data).Outcome.PendingToolCallIDs
}

// textEvents returns the events of a text message.
func textEvents(id string) []string {
	return []string{
		`{"type":"TEXT_MESSAGE_START","messageId":` + kit.Quote(id) + `,"role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":` + kit.Quote(id) + `,"delta":"x"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":` + kit.Quote(id) + `}`,
	}
}

// callEvents returns the events of a call of the client's tool show. All calls have one message.
func callEvents(id string) []string {
	return []string{
		`{"type":"TOOL_CALL_START","toolCallId":` + kit.Quote(id) + `,"toolCallName":"show","parentMessageId":"m1"}`,
		`{"type":"TOOL_CALL_END","toolCallId":` + kit.Quote(id) + `}`,
	}
}
