package remote

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// remoteAgent serves one agent whose run writes events, given the request's input.
func remoteAgent(t *testing.T, run func(in map[string]any, emit func(event string))) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		run(in, func(event string) {
			_, _ = w.Write([]byte("data: " + event + "\n\n")) // a client that has left reads nothing
			w.(http.Flusher).Flush()
		})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRemoteText: the text of a remote agent reaches the client, and the agent receives its own message
// with its own ID in the next run of the thread.
func TestRemoteText(t *testing.T) {
	t.Parallel()
	inputs := make(chan map[string]any, 2)
	url := remoteAgent(t, func(in map[string]any, emit func(string)) {
		inputs <- in
		emit(`{"type":"RUN_STARTED","threadId":"` + in["threadId"].(string) + `","runId":"` + in["runId"].(string) + `"}`)
		emit(`{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`)
		emit(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"From afar."}`)
		emit(`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`)
		emit(`{"type":"RUN_FINISHED","threadId":"` + in["threadId"].(string) + `","runId":"` + in["runId"].(string) + `"}`)
	})
	p := kit.SetupWith(t, "name: afar\nremote: {url: "+url+"}\n")
	in := kit.NewInput("Where are you?")
	events := p.RunAgent(t, "/v1/agents/afar/runs", in)
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage("From afar.")), kit.ShownMessages(t, in.Messages, events))
	<-inputs
	p.RunAgent(t, "/v1/agents/afar/runs", in.NextRun("run-2", "", kit.UserMessage("And now?")))
	messages, err := json.Marshal((<-inputs)["messages"])
	if err != nil || !strings.Contains(string(messages), `"id":"m1"`) {
		t.Errorf("the second run received %s, want the message with the ID m1", messages)
	}
}
