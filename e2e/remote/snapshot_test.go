package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSnapshotOfRemote: a MESSAGES_SNAPSHOT shows what the remote has not streamed, and corrects what it
// has streamed in part, as LangGraph's servers need it. Messages of the client stay. The next run sends
// the snapshot back as the remote knows it, with the new message.
func TestSnapshotOfRemote(t *testing.T) {
	t.Parallel()
	inputs := make(chan map[string]any, 3)
	url := remoteAgent(t, func(in map[string]any, emit func(string)) {
		inputs <- in
		run := fmt.Sprintf(`"threadId":%q,"runId":%q`, in["threadId"], in["runId"])
		emit(`{"type":"RUN_STARTED",` + run + `}`)
		if len(in["messages"].([]any)) == 1 {
			user, _ := json.Marshal(in["messages"].([]any)[0])
			emit(`{"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}`)
			emit(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"Let me look."}`)
			emit(`{"type":"TEXT_MESSAGE_END","messageId":"a1"}`)
			emit(`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"look","parentMessageId":"t1"}`) // the ID of the tool message
			emit(`{"type":"TOOL_CALL_END","toolCallId":"c1"}`)
			emit(`{"type":"TOOL_CALL_RESULT","toolCallId":"c1","messageId":"random","content":"blue","role":"tool"}`)
			emit(`{"type":"MESSAGES_SNAPSHOT","messages":[` + strings.Replace(string(user), "sky", "SKY", 1) + `,` +
				`{"id":"a1","role":"assistant","content":"Let me look.","toolCalls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"sky\"}"}}]},` +
				`{"id":"t1","role":"tool","toolCallId":"c1","content":"blue"},{"id":"a2","role":"assistant","content":"It is blue."}]}`)
		}
		emit(`{"type":"RUN_FINISHED",` + run + `}`)
	})
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\n")
	in := kit.NewInput("What is the sky like?")
	events := p.RunAgent(t, "/v1/agents/afar/runs", in)
	late := p.NewFollower(t, in)
	late.AttachPath = kit.EventsPath(in) + "?join=true"
	late.Finish(t)
	for name, shown := range map[string][]kit.Message{"the live client": kit.ShownMessages(t, in.Messages, events), "a late reader": kit.ShownMessages(t, nil, late.Events)} {
		var told []string
		for _, m := range shown {
			line := m.Role + ":" + m.Content
			for _, c := range m.ToolCalls {
				line += c.Function.Name + c.Function.Arguments
			}
			told = append(told, line)
		}
		if got, want := strings.Join(told, "|"), `user:What is the sky like?|assistant:Let me look.look{"at":"sky"}|tool:blue|assistant:It is blue.`; got != want {
			t.Errorf("%s shows %s, want %s", name, got, want)
		}
	}
	p.RunAgent(t, "/v1/agents/afar/runs", in.NextRun("run-2", "", kit.UserMessage("And the sea?")))
	<-inputs
	messages := (<-inputs)["messages"].([]any)
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.(map[string]any)["id"].(string))
	}
	if len(ids) != 5 || strings.Join(ids[1:4], " ") != "a1 t1 a2" {
		t.Errorf("the next run received messages %q, want those of the snapshot and the new one", ids)
	}
}
