package agui_test

import (
	"testing"

	"github.com/perdure/perdure/agui"
)

// TestRenameIDs: every ID of an item is renamed, and no ID of a thread, a run or a part, and no content.
func TestRenameIDs(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","subagentRunId":"s"}`:                                                                                                                                                 `{"type":"TEXT_MESSAGE_START","messageId":"x-m","role":"assistant","subagentRunId":"x-s"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"messageId"}`:                                                                                                                                                                  `{"type":"TEXT_MESSAGE_CONTENT","messageId":"x-m","delta":"messageId"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"c","parentMessageId":"m"}`:                                                                                                                                                 `{"type":"TOOL_CALL_START","toolCallId":"x-c","toolCallName":"c","parentMessageId":"x-m"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"c","role":"tool"}`:                                                                                                                                             `{"type":"TOOL_CALL_RESULT","messageId":"x-m","toolCallId":"x-c","content":"c","role":"tool"}`,
		`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"m"}`:                                                                                                                                         `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"x-m","encryptedValue":"m"}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{"id":"m"},"replace":true}`:                                                                                                                                  `{"type":"ACTIVITY_SNAPSHOT","messageId":"x-m","activityType":"a","content":{"id":"m"},"replace":true}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n","parentSubagentRunId":"p","parentToolCallId":"c","parentMessageId":"m"}`:                                                                                                    `{"type":"SUBAGENT_STARTED","subagentRunId":"x-s","name":"n","parentSubagentRunId":"x-p","parentToolCallId":"x-c","parentMessageId":"x-m"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"id":"u","role":"user","content":[{"type":"text","id":"p","text":"m"}]}]}`: `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"x-m","role":"assistant","toolCalls":[{"id":"x-c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"id":"x-u","role":"user","content":[{"type":"text","id":"p","text":"m"}]}]}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["c"]}}`:                                                                                                                           `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["x-c"]}}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"r","toolCallId":"c"}]}}`:                                                                                            `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"x-i","reason":"r","toolCallId":"x-c"}]}}`,
	} {
		e, err := agui.Decode([]byte(before))
		if err != nil {
			t.Fatalf("%s: %v", before, err)
		}
		want, err := agui.Decode([]byte(after))
		if err != nil {
			t.Fatalf("%s: %v", after, err)
		}
		agui.RenameIDs(e, func(id string) string { return "x-" + id })
		got, err := agui.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := agui.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(encoded) {
			t.Errorf("%s\n got %s\nwant %s", before, got, encoded)
		}
	}
}

// TestRenameMessageIDsCopies: the messages of an input, which others share, stay as they are.
func TestRenameMessageIDsCopies(t *testing.T) {
	t.Parallel()
	messages := []agui.Message{{ID: "m", Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: "c", Name: "f"}}}}
	renamed := agui.RenameMessageIDs(messages, func(id string) string { return "x-" + id })
	if renamed[0].ID != "x-m" || renamed[0].ToolCalls[0].ID != "x-c" {
		t.Errorf("renamed: %+v", renamed)
	}
	if messages[0].ID != "m" || messages[0].ToolCalls[0].ID != "c" {
		t.Errorf("the original has changed: %+v", messages)
	}
}
