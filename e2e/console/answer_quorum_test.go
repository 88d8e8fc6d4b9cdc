package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/perdure/perdure/e2e/kit"
)

// askingServer is a remote agent that asks which color, and then repeats what it is resumed with.
func askingServer(o office) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ThreadID string            `json:"threadId"`
			RunID    string            `json:"runId"`
			Resume   []json.RawMessage `json:"resume"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ids := fmt.Sprintf(`"threadId":%q,"runId":%q`, in.ThreadID, in.RunID)
		end := `{"type":"RUN_FINISHED",` + ids + `,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"input","message":"Which color?",` +
			`"responseSchema":{"type":"object","required":["color"],"properties":{"color":{"type":"string","title":"Color"}}}}]}}`
		if len(in.Resume) > 0 {
			end = `{"type":"RUN_FINISHED",` + ids + `}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_STARTED\",%s}\n\ndata: %s\n\n", ids, end) // the test notices a lost response
	}))
	o.t.Cleanup(server.Close)
	return server.URL
}

// testAnswerQuorum: two approvers must give the same answer to the question of a remote agent. The page
// shows the second one the answer of the first, and says what to do after another one.
func testAnswerQuorum(o office) {
	definition := json.RawMessage(fmt.Sprintf(`{"name":"colors","remote":{"url":%q,"interrupts":{"approvers":["role:finance"],"quorum":2}}}`, askingServer(o)))
	//nolint:bodyclose // RequestAs closes it
	if resp := o.RequestAs(o.t, o.keyOf("bob"), http.MethodPut, "/v1/agents/colors", definition); resp.StatusCode/100 != 2 {
		o.t.Fatalf("publish: %s", resp.Status)
	}
	approval := o.requestOf("ada", "colors", kit.NewThread(), "Paint it.")

	alice := o.signIn("alice", page(approval))
	alice.Await("[aria-label=Votes]", "Nobody has voted yet. 2 people must give the same answer.")
	alice.Type("role=textbox[name=Color]", "red")
	alice.Click("role=button[name=/^Answer/]")
	alice.Await("[aria-label=Decision]", "Your vote counts. One more person must give the same answer.")
	alice.Await("[aria-label=Votes]", "1 of 2 for the answer")

	bob := o.signIn("bob", page(approval))
	bob.Await("[aria-label=Votes]", "red")
	bob.Type("role=textbox[name=Color]", "blue")
	bob.Click("role=button[name=/^Answer/]")
	bob.Await("[role=alert]", "Others have given another answer already. Give the same one, or decline.")
	bob.Type("role=textbox[name=Color]", "red")
	bob.Click("role=button[name=/^Answer/]")
	alice.Await("[aria-label='Recorded decision']", "bob answered")
	bob.WantAccessible()
}
