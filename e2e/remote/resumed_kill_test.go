package remote

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestKilledAfterAnswer: perdure is killed while an agent continues after the answer of a person. The run that is
// made again brings the answer to the agent again, and the conversation has each message once.
func TestKilledAfterAnswer(t *testing.T) {
	t.Parallel()
	s := npmServers[0]
	s.AgentServer = kit.StartAgentServer(t, s.script, s.folder)
	g := startLangGraph(t)
	p := kit.SetupWith(t, s.definition("restart")+fmt.Sprintf("---\nname: graph\nremote: {url: 'http://%s/chat?exact', retry: restart}\n", g.Address))
	yes, no := true, false
	room, slow := kit.UserMessage(kit.Marked("A suite, please")), kit.LongText(2000)
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: room.Content, HasToolResult: &no}, Response: kit.Response{Content: oneMoment, ToolCalls: []kit.ModelCall{{Name: "booking", Arguments: `{"room":"12"}`}}}},
		kit.Fixture{Match: kit.Match{UserMessage: room.Content, HasToolResult: &yes}, Response: kit.Response{Content: slow}, Latency: 20, ChunkSize: 20})
	use, many := kit.UserMessage("slowly use book"), `"`+strings.Repeat("yes ", 40)+`"`
	for agent, c := range map[string]struct {
		answer   string
		messages []kit.Message // after the answer; the first is the input
	}{
		"mastra-restart": {`{"confirmed":true}`, []kit.Message{
			room, kit.AssistantMessage(oneMoment), kit.ToolMessage(`{"room":"12","confirmed":true}`), kit.AssistantMessage(slow),
		}},
		"graph": {many, []kit.Message{
			use, kit.ToolCallMessage(kit.ModelCall{Name: "book", Arguments: `{"number":0}`}), kit.ToolMessage("booked 0: " + many), kit.AssistantMessage("So: booked 0: " + many),
		}},
	} {
		t.Run(agent, func(t *testing.T) {
			in := kit.NewInput("")
			in.Messages = c.messages[:1]
			f := p.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
			f.Finish(t)
			asked := kit.InterruptsOf(t, f.Events)[0]
			if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":`+c.answer+`}`); status != http.StatusOK {
				t.Fatalf("answer: got %d %v, want %d", status, a, http.StatusOK)
			}
			thread := p.FollowThread(t, in)
			first, _, _ := strings.Cut(c.messages[3].Content, " ")
			for text := ""; !strings.HasPrefix(text, first); {
				e, err := thread.Next()
				if err != nil {
					t.Fatal(err)
				}
				switch e.Type {
				case "TEXT_MESSAGE_START":
					text = ""
				case "TEXT_MESSAGE_CONTENT":
					text += e.Member("delta")
				}
			}
			p.Restart(t)
			thread.UntilSuccess(t)
			kit.WantMessages(t, c.messages, p.MessagesOf(t, in.ThreadID))
			shown, err := kit.Reduce(in.Messages, thread.Events, kit.RetractWarning)
			if err != nil {
				t.Fatal(err)
			}
			kit.WantMessages(t, c.messages, shown)
		})
	}
	if n := len(s.received(t, room.Content)); n != 3 {
		t.Errorf("runs that Mastra received = %d, want 3: with the question, and two with the answer", n)
	}
}
