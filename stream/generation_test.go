package stream_test

import (
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// TestEventsForOlderClients: clients before protocol version 1.0 refuse some
// events. They get other events instead.
func TestEventsForOlderClients(t *testing.T) {
	t.Parallel()
	image := agui.ContentPart{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceURL, Value: "https://example.com/i.png"}}
	file := agui.ContentPart{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceFile, Value: "file-1", Provider: "openai"}}
	parts := agui.PartsContent([]agui.ContentPart{agui.TextPart("sun"), image, agui.TextPart("ny")})
	n := int64(3)
	usage := []agui.TokenUsage{{Provider: "p", InputTokens: &n}}
	for _, c := range []struct {
		name                             string
		event                            agui.Event
		wantGeneration0, wantGeneration1 string
	}{
		{
			"a cancelled run is an error",
			&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}, Usage: usage},
			`{"type":"RUN_ERROR","message":"the run was cancelled","code":"cancelled","usage":[{"provider":"p","inputTokens":3}]}`,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"},"usage":[{"provider":"p","inputTokens":3}]}`,
		},
		{
			"pending tool calls are not named",
			&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"c"}}},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}`,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["c"]}}`,
		},
		{
			"a run without outcome is unchanged",
			&agui.RunFinished{ThreadID: "t", RunID: "r"},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		},
		{
			"interrupts are unchanged",
			&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i", Reason: "tool_call"}}}},
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call"}]}}`,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call"}]}}`,
		},
		{
			"a tool's result is text",
			&agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: parts, Role: agui.RoleTool},
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"sunny","role":"tool"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"text","text":"sun"},{"type":"image","source":{"type":"url","value":"https://example.com/i.png"}},{"type":"text","text":"ny"}],"role":"tool"}`,
		},
		{
			"a tool's result in a snapshot is text, and a provider's file is left out",
			&agui.MessagesSnapshot{Messages: []agui.Message{
				{ID: "u", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{agui.TextPart("see"), file, image})},
				{ID: "f", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{file})},
				{ID: "m", Role: agui.RoleTool, ToolCallID: "c", Content: parts},
				{ID: "p", Role: agui.RoleActivity, ActivityType: "plan", Content: agui.ObjectContent([]byte(`{"a":1}`))},
			}},
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"url","value":"https://example.com/i.png"}}]},{"id":"f","role":"user","content":[]},{"id":"m","role":"tool","toolCallId":"c","content":"sunny"},{"id":"p","role":"activity","activityType":"plan","content":{"a":1}}]}`,
			"",
		},
		{
			"unknown members do no harm", &agui.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: "1.0"},
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}`,
		},
	} {
		for profile, want := range map[stream.Generation]string{stream.Generation0: c.wantGeneration0, stream.Generation1: c.wantGeneration1} {
			got, err := encodeFor(profile, c.event)
			if err != nil || want != "" && string(got) != want {
				t.Errorf("%s: profile %s: got\n%s (%v), want\n%s", c.name, profile, got, err, want)
			}
		}
	}
}

func TestGenerationOfVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]stream.Generation{"": stream.Generation0, "1.0": stream.Generation1, "1.7": stream.Generation1} {
		if got := stream.GenerationOf(version); got != want {
			t.Errorf("ProfileOf(%q) = %s, want %s", version, got, want)
		}
	}
}

// encodeFor returns an event as a profile encodes it.
func encodeFor(p stream.Generation, e agui.Event) ([]byte, error) {
	raw, err := agui.Encode(e)
	if err != nil {
		return nil, err
	}
	_, spoken, err := view.Downgrade(p, e.EventType(), raw)
	return spoken, err
}
