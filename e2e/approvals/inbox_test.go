package approvals

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is a webhook receiver. It fails at first.
type receiver struct {
	*httptest.Server
	checker *standardwebhooks.Webhook
	changed chan struct{} // buffered, size 1

	mu       sync.Mutex
	tries    map[string]int    // by message id
	accepted map[string]string // type and thread of the accepted messages
	wrong    []error
}

const hookSecret = "0123456789abcdef0123456789abcdef"

// startReceiver starts a receiver of webhooks.
func startReceiver(t *testing.T) *receiver {
	t.Helper()
	checker, err := standardwebhooks.NewWebhookRaw([]byte(hookSecret))
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{checker: checker, changed: make(chan struct{}, 1), tries: map[string]int{}, accepted: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

// take receives a webhook.
func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var message struct {
		Type string
		Data struct{ Approval struct{ ThreadID string } }
	}
	if err == nil {
		err = r.checker.Verify(body, req.Header)
	}
	if err == nil {
		err = json.Unmarshal(body, &message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.Header.Get("webhook-id")
	r.tries[id]++
	switch {
	case err != nil:
		r.wrong = append(r.wrong, err)
	case len(r.tries) == 1 && r.tries[id] == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.accepted[id] = strings.TrimPrefix(message.Type, "approval.") + " " + message.Data.Approval.ThreadID
		w.WriteHeader(http.StatusNoContent)
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// await waits until it has received exactly these messages, each once.
func (r *receiver) await(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for {
		r.mu.Lock()
		var got []string
		for _, what := range r.accepted {
			got = append(got, what)
		}
		wrong := r.wrong
		r.mu.Unlock()
		slices.Sort(got)
		if len(wrong) > 0 {
			t.Fatalf("inbox: %s, want each open interrupt", wrong)
		}
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			t.Fatalf("the receiver got %q, want %q", got, want)
		}
	}
}

// TestInbox: two threads wait for approval. A person finds them in the inbox, follows its events
// over a reconnect, and decides one in a batch and the other by a link. A webhook receives all of
// it. The process is killed in between.
func TestInbox(t *testing.T) {
	hook := startReceiver(t)
	file := filepath.Join(t.TempDir(), "webhooks.yaml")
	config := fmt.Sprintf("- {name: chat, url: %q, events: [opened, decided], secret: HOOK}\n", hook.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{
		"PERDURE_PARK_AFTER=100ms", "PERDURE_WEBHOOKS=" + file,
		"PERDURE_SECRET_HOOK=whsec_" + base64.StdEncoding.EncodeToString([]byte(hookSecret)),
	}
	p.InspectAtEnd(t)
	p.Start(t)
	cursor := p.AwaitPending(t, "").EventsCursor
	var in [2]kit.Input
	for i := range in {
		prompt := kit.Marked("Work it out.")
		kit.ScriptCalculations(t, prompt, kit.Marked("There."), fmt.Sprintf("7+1%d", i))
		in[i] = kit.NewInput(prompt)
		asked := p.FollowAgent(t, kit.CarefulPath, in[i])
		asked.Finish(t)
	}
	first, second := in[0].ThreadID, in[1].ThreadID
	want := []string{"opened " + first, "opened " + second}
	slices.Sort(want)
	opened, cursor := p.ReadInboxEvents(t, cursor, 2)
	if !slices.Equal(opened, want) {
		t.Errorf("opened events of the hook = %q, want %q", opened, want)
	}
	p.AwaitPending(t, "?tool=calculate&assignee=me", first, second)
	kit.AwaitWorkflowType(t, p.Endpoint, in[1], "thread.parked.v1")
	p.Kill()
	p.Start(t)
	waiting := p.AwaitPending(t, "", first, second).Items
	if waiting[0].ThreadID != first {
		slices.Reverse(waiting)
	}
	if a := waiting[0]; a.ToolName != "calculate" || a.Args["expression"] != "7+10" || a.ArgsDigest == "" {
		t.Errorf("approval of the inbox = %+v, want the call of calculate", a)
	}
	decideInBatch(t, p.Endpoint, waiting[0])
	decideByLink(t, p.Endpoint, waiting[1])
	for i := range in {
		f := p.FollowThread(t, in[i])
		f.UntilSuccess(t)
		if got := kit.ToolResultsSent(t, in[i].Messages[0].Content); !slices.Equal(got, []string{fmt.Sprint(17 + i)}) {
			t.Errorf("results sent to the model = %q, want %q", got, []string{fmt.Sprint(17 + i)})
		}
	}
	decided, _ := p.ReadInboxEvents(t, cursor, 2)
	if want := []string{"decided " + first, "decided " + second}; !slices.Equal(decided, want) && !slices.Equal(decided, []string{want[1], want[0]}) {
		t.Errorf("events of the feed after the reconnect = %q, want both decisions", decided)
	}
	p.AwaitPending(t, "")
	for i, channel := range []string{"batch", "link"} {
		var audit kit.InboxPage
		p.GetJSON(t, "/v1/threads/"+url.PathEscape(in[i].ThreadID)+"/approvals", &audit)
		if len(audit.Items) != 1 || audit.Items[0].Status != "decided" || len(audit.Items[0].Decisions) != 1 {
			t.Fatalf("audit = %+v, want one decided approval", audit)
		}
		if d := audit.Items[0].Decisions[0]; d.Channel != channel || d.Decision != "approve" || d.Digest == "" || d.ArgsDigest != waiting[i].ArgsDigest {
			t.Errorf("decision of the audit = %+v, want an approval by %s", d, channel)
		}
	}
	hook.await(t, "opened "+first, "opened "+second, "decided "+first, "decided "+second)
}

// decideInBatch approves with a batch.
func decideInBatch(t *testing.T, p *kit.Endpoint, a kit.Approval) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/approvals/batch", map[string]any{"decisions": []any{
		map[string]any{"threadId": a.ThreadID, "id": a.ID, "decision": "approve"},
		map[string]any{"threadId": a.ThreadID, "id": "nonsense", "decision": "approve"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Items []struct{ Status int } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Items) != 2 || answer.Items[0].Status != 200 || answer.Items[1].Status != 404 {
		t.Fatalf("batch = %+v, %v, want the statuses 200 and 404", answer, err)
	}
}

// decideByLink approves with a link.
func decideByLink(t *testing.T, p *kit.Endpoint, a kit.Approval) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/threads/"+url.PathEscape(a.ThreadID)+"/approvals/"+a.ID+"/links", map[string]any{"decision": "approve"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ URL string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("link: got %s, %v, want %d", resp.Status, err, http.StatusCreated)
	}
	for _, step := range []struct {
		method     string
		wantStatus int
	}{{http.MethodGet, 200}, {http.MethodGet, 200}, {http.MethodPost, 200}} {
		req, err := http.NewRequestWithContext(t.Context(), step.method, made.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != step.wantStatus {
			t.Errorf("%s of the link: %s, want %d", step.method, resp.Status, step.wantStatus)
		}
	}
}
