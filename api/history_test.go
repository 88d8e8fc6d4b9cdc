package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// withPerdureProps sets members of forwardedProps.perdure.
func withPerdureProps(members string) func(*agui.RunAgentInput) {
	return withForwardedProps(`{"perdure":` + members + `}`)
}

// runWithMessages runs a thread with messages.
func (n *node) runWithMessages(run string, messages []agui.Message, more ...func(*agui.RunAgentInput)) answer {
	n.t.Helper()
	in := inputOf(run, "")
	in.Messages = messages
	for _, m := range more {
		m(&in)
	}
	return n.post(in)
}

// userMessage returns a message of the user.
func userMessage(id, text string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}
}

// TestClientWithLostListKeepsConversation: a client that lost its list sends only new
// messages. The thread keeps the conversation, the model gets all of it, and the client is sent the
// missing messages.
func TestClientWithLostListKeepsConversation(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.runWithMessages("r0", []agui.Message{userMessage("m0", "What is 12*7?")})
	for i := 1; i < 4; i++ {
		a := node.runWithMessages(fmt.Sprint("r", i), []agui.Message{userMessage(fmt.Sprint("m", i), "And then?")})
		if types := eventTypes(t, a.body); len(types) < 2 || types[0] != "RUN_STARTED" || types[1] != "MESSAGES_SNAPSHOT" {
			t.Errorf("run %d: got the events %q, want a MESSAGES_SNAPSHOT after RUN_STARTED", i, types)
		}
	}
	if got, want := node.messages("t"), "m0 a-r0 m1 a-r1 m2 a-r2 m3 a-r3"; got != want {
		t.Errorf("conversation: got %s, want %s", got, want)
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/superseded", ""); a.body != `{"items":[]}` {
		t.Errorf("superseded: body = %q, want %q", a.body, `{"items":[]}`)
	}
}

// TestHistoryOfAgent: the agent's definition says how lists are read. An input may override it.
func TestHistoryOfAgent(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.publishRevision("name: a\nmodel: test/m\nhistory: replace\n")
	node.runWithMessages("r0", []agui.Message{userMessage("m0", "one")})
	node.runWithMessages("r1", []agui.Message{userMessage("m1", "two")})
	if got, want := node.messages("t"), "m1 a-r1"; got != want {
		t.Errorf("conversation with the agent's default: got %s, want %s", got, want)
	}
	node.runWithMessages("r2", []agui.Message{userMessage("m2", "three")}, withPerdureProps(`{"history":"auto"}`))
	if got, want := node.messages("t"), "m1 a-r1 m2 a-r2"; got != want {
		t.Errorf("conversation with the input's value: got %s, want %s", got, want)
	}
	node.runWithMessages("r3", []agui.Message{userMessage("m2", "three, but better")}, withPerdureProps(`{"history":"append"}`))
	if got, want := node.messages("t"), "m1 a-r1 m2 a-r2 a-r3"; got != want {
		t.Errorf("conversation with append: got %s, want %s", got, want)
	}
}

// TestSupersededMessages: messages that an input removes from the conversation are listed, can be
// read, and can be continued by a fork.
func TestSupersededMessages(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.runWithMessages("r0", []agui.Message{userMessage("m0", "one")})
	node.runWithMessages("r1", []agui.Message{userMessage("m1", "two")})
	node.runWithMessages("r2", []agui.Message{userMessage("m1", "two, but better")})
	node.runWithMessages("r3", []agui.Message{userMessage("m0", "one, but better")})
	if got, want := node.messages("t"), "m0 a-r3"; got != want {
		t.Errorf("conversation: got %s, want %s", got, want)
	}
	type tail struct {
		RunID, SupersededAt, AfterMessageID string
		Messages                            int
		Fork                                struct{ ThreadID, RunID string }
	}
	var page struct {
		Items      []tail
		NextCursor string
	}
	var tails []tail
	for next := ""; ; next = "&cursor=" + page.NextCursor {
		page.NextCursor, page.Items = "", nil
		node.get("/v1/threads/t/superseded?limit=1"+next, &page)
		tails = append(tails, page.Items...)
		if page.NextCursor == "" {
			break
		}
	}
	mustEqual(t, "number of superseded tails", len(tails), 2)
	mustEqual(t, "run of the first tail", tails[0].RunID, "r3")
	mustEqual(t, "number of messages of the first tail", tails[0].Messages, 4)
	mustEqual(t, "message before the first tail", tails[0].AfterMessageID, "")
	mustEqual(t, "run of the first tail's fork", tails[0].Fork.RunID, "r2")
	mustEqual(t, "thread of the first tail's fork", tails[0].Fork.ThreadID, "t")
	mustEqual(t, "run of the second tail", tails[1].RunID, "r2")
	mustEqual(t, "number of messages of the second tail", tails[1].Messages, 2)
	mustEqual(t, "message before the second tail", tails[1].AfterMessageID, "a-r0")
	mustEqual(t, "run of the second tail's fork", tails[1].Fork.RunID, "r1")
	if tails[1].SupersededAt == "" {
		t.Error("superseded: [1].SupersededAt is empty, want a value")
	}
	for run, want := range map[string][]string{"r3": {"m0", "a-r0", "m1", "a-r2"}, "r2": {"m1", "a-r1"}, "r0": nil} {
		var ids []string
		for next := ""; ; {
			var p list
			node.get("/v1/threads/t/superseded/"+run+"?limit=1"+next, &p)
			for _, m := range p.Items {
				ids = append(ids, m.ID)
			}
			if p.NextCursor == "" {
				break
			}
			next = "&cursor=" + p.NextCursor
		}
		if fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("superseded by run %s: got %q, want %q", run, ids, want)
		}
	}
	if a := node.do(http.MethodPost, "/v1/threads/t/runs/r2/fork", `{"threadId":"back"}`); a.status != http.StatusCreated {
		t.Fatalf("fork: status = %v, want %v; body: %s", a.status, http.StatusCreated, a.body)
	}
	if got, want := node.messages("back"), "m0 a-r0 m1 a-r2"; got != want {
		t.Errorf("fork: got %s, want %s", got, want)
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/superseded/nobody", ""); a.status != http.StatusNotFound || a.problem.Code != "unknown_run" || !strings.Contains(a.problem.Detail, `the thread "t" has no run "nobody"`) {
		t.Errorf("unknown run: got %d %s, want %d unknown_run", a.status, a.body, http.StatusNotFound)
	}
	if a := node.do(http.MethodGet, "/v1/threads/nobody/superseded", ""); a.status != http.StatusNotFound || a.problem.Code != "unknown_thread" {
		t.Errorf("unknown thread: got %d %s, want %d unknown_thread", a.status, a.body, http.StatusNotFound)
	}
}

// TestSeenCursor: the list of a client with a `seen` cursor does not edit messages after that
// cursor.
func TestSeenCursor(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	first := node.runWithMessages("r0", []agui.Message{userMessage("m0", "one")})
	seen := lastCursor(first.body)
	node.runWithMessages("r1", []agui.Message{userMessage("m1", "two")})

	stale := []agui.Message{userMessage("m0", "one"), {ID: "a-r0", Role: agui.RoleAssistant, Content: agui.TextContent("answer to r0")}, userMessage("m2", "three")}
	withSeen := withPerdureProps(fmt.Sprintf(`{"seen":%q}`, seen))
	node.runWithMessages("r2", stale, withSeen)
	if got, want := node.messages("t"), "m0 a-r0 m1 a-r1 m2 a-r2"; got != want {
		t.Errorf("conversation: got %s, want %s", got, want)
	}
	// The `seen` cursor is not part of the input's digest.
	again := node.runWithMessages("r2", stale, withPerdureProps(fmt.Sprintf(`{"seen":%q}`, lastCursor(node.do(http.MethodGet, "/v1/threads/t/runs/r2/events", "").body))))
	again.wantStatus(t, "the same input with a later cursor", http.StatusOK)
	if lastCursor(again.body) == "" {
		t.Error("lastCursor(again.body) is empty, want a value")
	}
	if a := node.runWithMessages("r3", stale, withPerdureProps(`{"seen":"mine"}`)); a.status != http.StatusBadRequest || a.problem.Pointer != "/forwardedProps/perdure/seen" {
		t.Errorf("invalid cursor: got %d %s, want %d with the pointer of seen", a.status, a.body, http.StatusBadRequest)
	}
	// A cursor of a replaced log is ignored.
	if a := node.runWithMessages("r4", []agui.Message{userMessage("m4", "four")}, withPerdureProps(`{"seen":"00000000000400000-1zzzzzzzz"}`)); a.status != http.StatusOK {
		t.Errorf("cursor of another log: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
}

// eventTypes lists the types of a stream's events.
func eventTypes(t *testing.T, body string) []string {
	t.Helper()
	var types []string
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var event struct{ Type string }
		err := json.Unmarshal([]byte(data), &event)
		if err != nil {
			t.Fatalf("event %s: %v", data, err)
		}
		types = append(types, event.Type)
	}
	return types
}

// lastCursor returns the cursor of a stream's last event.
func lastCursor(body string) string {
	all := cursors(body)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}
