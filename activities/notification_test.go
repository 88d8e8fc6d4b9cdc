package activities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// notificationFixture is a fixture whose run has raised an interrupt, with an inbox for
// notifications.
type notificationFixture struct {
	*fixture
	waits     *runs.Interrupts
	after     uint64
	store     *inbox.Store
	delivered []runs.Delivery
}

var interruptMetadata = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// setupNotifications returns a fixture whose run waits for an approval.
func setupNotifications(t *testing.T, hooks ...webhook.Hook) *notificationFixture {
	t.Helper()
	base, s := setupInterrupt(t)
	base.agent.Approvals[0].Approvers, base.agent.Approvals[0].Escalate = []string{"role:finance"}, []agents.Escalation{{After: time.Hour, To: []string{"alice"}}}
	base.agent.Name = "a"
	fixture := &notificationFixture{fixture: base, waits: s}
	r, err := base.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	fixture.after = r.Seq
	if fixture.store, err = inbox.Open(t.Context(), base.log); err != nil {
		t.Fatal(err)
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	sender := webhook.NewSender(hooks, func(string) string { return secret }, egress.AnyNetwork)
	t.Cleanup(sender.Close)
	base.acts.Inbox, base.acts.Webhooks = fixture.store, sender
	base.acts.StartDelivery = func(_ context.Context, in runs.Delivery) error {
		fixture.delivered = append(fixture.delivered, in)
		return nil
	}
	return fixture
}

// notify sends a notification, some time after the interrupt was opened.
func (f *notificationFixture) notify(event runs.NotificationEvent, after time.Duration) {
	f.t.Helper()
	env := newActivityEnv()
	env.RegisterActivity(f.acts.Notify)
	_, err := env.ExecuteActivity(f.acts.Notify, runs.Notification{
		Run: runs.Ref{Tenant: "default", Thread: run.Thread.ID, ID: run.ID}, Agent: "a", Revision: "v", Event: event,
		OpenedAt: interruptMetadata, At: interruptMetadata.Add(after), MessageID: f.waits.MessageID, Items: f.waits.Items, After: f.after,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// pending returns the inbox as another process reads it.
func (f *notificationFixture) pending() []inbox.Approval {
	f.t.Helper()
	x, err := f.store.Watch(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	defer x.Stop()
	p, err := x.List("default", inbox.Filter{}, "", 100)
	if err != nil {
		f.t.Fatal(err)
	}
	list := make([]inbox.Approval, len(p.Items))
	for i, raw := range p.Items {
		if err := json.Unmarshal(raw, &list[i]); err != nil {
			f.t.Fatal(err)
		}
	}
	return list
}

// history returns the approvals of the audit.
func (f *notificationFixture) history() []*inbox.History {
	f.t.Helper()
	all, err := inbox.ReadHistory(f.t.Context(), f.log, run.Thread)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// propose writes a decision, as the API does.
func (f *notificationFixture) propose(subject, channel, kind, reason string) runs.Decision {
	f.t.Helper()
	seq := f.proposeDecision(&stream.Decision{
		CallID: f.waits.Items[0].ID, Kind: kind, Reason: reason, Channel: channel, By: &auth.Principal{Tenant: "default", Subject: subject},
	})
	return runs.Decision{CallID: f.waits.Items[0].ID, Kind: runs.DecisionKind(kind), Digest: "d-" + subject, Proposal: seq, ArgsDigest: f.waits.Items[0].Approval.ArgsDigest}
}

func TestRepeatedNotification(t *testing.T) {
	t.Parallel()
	fixture := setupNotifications(t, webhook.Hook{Name: "all"}, webhook.Hook{Name: "decided", Events: []inbox.EventType{inbox.Decided}}, webhook.Hook{Name: "others", Agents: []string{"b"}})
	c := &fixture.waits.Items[0]
	c.Expires, c.Approval.Quorum, c.Approval.Escalate = interruptMetadata.Add(24*time.Hour), 2, []time.Duration{time.Hour}
	for range 2 {
		fixture.notify(runs.EventOpened, 0)
	}
	expires, escalates := c.Expires, interruptMetadata.Add(time.Hour)
	want := inbox.Approval{
		ID: run.Identify("int", c.ID), ThreadID: "t1", RunID: "r1", Agent: "a", ToolCallID: c.ID, ToolName: "add", Reason: "tool_call", Args: json.RawMessage(`{"a":1,"b":2}`),
		ArgsDigest: c.Approval.ArgsDigest, Message: "May add be called?", RequestedAt: interruptMetadata, ExpiresAt: &expires, Voting: inbox.Voting{Approvers: []string{"role:finance"}, Quorum: 2, EscalatesAt: &escalates, Decisions: []inbox.Decision{}, Tallies: []inbox.Tally{{ArgsDigest: c.Approval.ArgsDigest, Decision: "approve", Missing: 2}}},
	}
	if diff := cmp.Diff([]inbox.Approval{want}, fixture.pending()); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
	c.Votes = []runs.Decision{fixture.propose("alice", "http", "approve", "")}
	c.Escalations = 1
	for range 2 {
		fixture.notify(runs.EventVoted, time.Hour)
	}
	voted := fixture.pending()[0]
	mustEqual(t, "number of votes in the inbox", len(voted.Decisions), 1)
	wantEqual(t, "voter in the inbox", voted.Decisions[0].By, "alice")
	wantEqual(t, "channel of the vote in the inbox", voted.Decisions[0].Channel, "http")
	wantEqual(t, "the inbox has a next escalation", voted.EscalatesAt != nil, false)
	wantEqual(t, "approvers in the inbox", voted.Approvers, []string{"role:finance", "alice"})
	last := fixture.propose("bob", "link", "approve", "fine")
	c.Decision = &last
	fixture.notify(runs.EventDecided, 2*time.Hour)
	fixture.notify(runs.EventOpened, 0) // a late attempt
	fixture.notify(runs.EventVoted, time.Hour)
	if pending := fixture.pending(); len(pending) != 0 {
		t.Errorf("inbox after the decision: got %+v, want none", pending)
	}
	history := fixture.history()
	mustEqual(t, "number of approvals in the audit", len(history), 1)
	mustEqual(t, "status of the approval", history[0].Status, inbox.StatusDecided)
	mustEqual(t, "arguments of the approval", string(history[0].Args), `{"a":1,"b":2}`)
	mustEqual(t, "number of events of the approval", len(history[0].Events), 3)
	for i, want := range []inbox.Decision{{By: "alice", Channel: "http"}, {By: "bob", Channel: "link", Reason: "fine"}} {
		got := history[0].Decisions[i]
		wantEqual(t, fmt.Sprintf("decision %d: by", i), got.By, want.By)
		wantEqual(t, fmt.Sprintf("decision %d: channel", i), got.Channel, want.Channel)
		wantEqual(t, fmt.Sprintf("decision %d: reason", i), got.Reason, want.Reason)
		wantEqual(t, fmt.Sprintf("decision %d: kind", i), got.Decision, "approve")
		wantEqual(t, fmt.Sprintf("decision %d: arguments digest", i), got.ArgsDigest, c.Approval.ArgsDigest)
		if got.Digest == "" {
			t.Errorf("decision %d: digest is empty, want a value", i)
		}
		wantEqual(t, fmt.Sprintf("decision %d has no time", i), got.At.IsZero(), false)
	}
	sent := map[string]int{}
	for _, in := range fixture.delivered {
		sent[in.Webhook+" "+in.Event]++
	}
	if len(sent) != 4 { // deliveries with the same ID are one
		t.Errorf("deliveries to webhooks: got %v, want 4", sent)
	}
}

func TestExpiryHasNoApprover(t *testing.T) {
	t.Parallel()
	fixture := setupNotifications(t)
	fixture.notify(runs.EventOpened, 0)
	fixture.waits.Items[0].Decision = &runs.Decision{CallID: fixture.waits.Items[0].ID, Kind: runs.DecisionExpire}
	fixture.notify(runs.EventExpired, 24*time.Hour)
	history := fixture.history()
	mustEqual(t, "number of approvals in the audit", len(history), 1)
	mustEqual(t, "status of the approval", history[0].Status, inbox.StatusExpired)
	mustEqual(t, "number of decisions of the approval", len(history[0].Decisions), 1)
	wantEqual(t, "kind of the decision", history[0].Decisions[0].Decision, "expire")
	wantEqual(t, "approver of the decision", history[0].Decisions[0].By, "")
	wantEqual(t, "time of the decision", history[0].Decisions[0].At, interruptMetadata.Add(24*time.Hour))
}

// TestLostInboxIsRestored: a lost bucket is restored from the log. An existing one is unchanged.
func TestLostInboxIsRestored(t *testing.T) {
	t.Parallel()
	fixture := setupNotifications(t)
	fixture.notify(runs.EventOpened, 0)
	fixture.waits.Items[0].Votes = []runs.Decision{fixture.propose("alice", "http", "approve", "")}
	fixture.notify(runs.EventVoted, time.Hour)
	before := fixture.pending()
	lose := func() {
		js := fixture.log.Conn()
		if _, err := js.Request("$JS.API.STREAM.DELETE.KV_PERDURE_approvals", nil, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		var err error
		if fixture.store, err = inbox.Open(t.Context(), fixture.log); err != nil {
			t.Fatal(err)
		}
		fixture.acts.Inbox = fixture.store
		if lost := fixture.pending(); len(lost) != 0 {
			t.Fatalf("inbox after its loss: got %v, want none", lost)
		}
	}
	restore := func() {
		t.Helper()
		if err := fixture.store.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	restore()
	if diff := cmp.Diff(before, fixture.pending()); diff != "" || len(before) != 1 || len(before[0].Decisions) != 1 {
		t.Errorf("restored inbox (-want +got):\n%s", diff)
	}
	decision := fixture.propose("bob", "http", "approve", "")
	fixture.waits.Items[0].Decision = &decision
	fixture.notify(runs.EventDecided, 2*time.Hour)
	restore()
	if pending := fixture.pending(); len(pending) != 0 {
		t.Errorf("restored after the decision: got %+v, want none", pending)
	}
	lose()
	restore()
	if pending := fixture.pending(); len(pending) != 0 {
		t.Errorf("restored after the decision and a loss: got %+v, want none", pending)
	}
}

func TestShownArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	long, err := json.Marshal(map[string]string{"x": string(make([]byte, inbox.MaxArgs))})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{`{"a":1}`: `{"a":1}`, `{"a":`: `"{\"a\":"`, "": `""`, string(long): ""} {
		got, truncated := activities.InboxArgs(given)
		wantEqual(t, fmt.Sprintf("%.20s: shown arguments", given), string(got), want)
		wantEqual(t, fmt.Sprintf("%.20s: arguments are truncated", given), truncated, want == "")
	}
}

// TestWebhookDelivery: an event is sent as it was stored. A receiver that refuses it permanently
// gets no further attempt.
func TestWebhookDelivery(t *testing.T) {
	t.Parallel()
	var body []byte
	status := http.StatusServiceUnavailable
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	fixture := setupNotifications(t, webhook.Hook{Name: "chat", URL: receiver.URL, Secret: "S"})
	fixture.notify(runs.EventOpened, 0)
	deliver := func(in runs.Delivery) error {
		env := newActivityEnv()
		env.RegisterActivity(fixture.acts.SendWebhook)
		_, err := env.ExecuteActivity(fixture.acts.SendWebhook, in)
		return err
	}
	var app *temporal.ApplicationError
	if err := deliver(fixture.delivered[0]); !errors.As(err, &app) || app.NonRetryable() {
		t.Errorf("receiver is down: got %v, want a retryable error", err)
	}
	status = http.StatusForbidden
	if err := deliver(fixture.delivered[0]); !errors.As(err, &app) || !app.NonRetryable() || app.Type() != "webhook_refused" {
		t.Errorf("receiver refuses: got %v, want a permanent error", err)
	}
	if bytes.Contains(body, []byte("consoleUrl")) {
		t.Errorf("without a console: got %s, want no consoleUrl", body)
	}
	status = http.StatusOK
	fixture.acts.Webhooks.ConsoleURL = "https://agents.example/console"
	if err := deliver(fixture.delivered[0]); err != nil {
		t.Error(err)
	}
	var sent struct {
		Type      string
		Timestamp time.Time
		Data      struct {
			Tenant, ConsoleURL string
			Approval           inbox.Approval
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil || sent.Type != "approval.opened" || !sent.Timestamp.Equal(interruptMetadata) || sent.Data.Tenant != "default" || sent.Data.Approval.ToolName != "add" {
		t.Errorf("body: got %s (%v), want the event approval.opened of a call of add", body, err)
	}
	if want := "https://agents.example/console/inbox/t1/" + sent.Data.Approval.ID; sent.Data.ConsoleURL != want {
		t.Errorf("consoleUrl = %q, want %q", sent.Data.ConsoleURL, want)
	}
	if err := deliver(runs.Delivery{Tenant: "default", Event: "evt_none", Webhook: "chat"}); !errors.As(err, &app) || !app.NonRetryable() {
		t.Errorf("unknown event: got %v, want a permanent error", err)
	}
}

// TestAuditOfDecisions: votes are counted for each proposal. The audit has the content of
// every decision: the arguments of an edit, the scope of an approval, and the approver.
func TestAuditOfDecisions(t *testing.T) {
	t.Parallel()
	fixture := setupNotifications(t)
	c := &fixture.waits.Items[0]
	c.Approval.Quorum = 2
	fixture.notify(runs.EventOpened, 0)
	propose := func(subject string, content stream.Decision) runs.Decision {
		content.CallID, content.By = c.ID, &auth.Principal{Tenant: "default", Subject: subject}
		p, err := fixture.log.ProposeDecision(t.Context(), run, sha256.Sum256([]byte(subject+content.Kind)), &content)
		if err != nil {
			t.Fatal(err)
		}
		decision := runs.Decision{CallID: c.ID, Kind: runs.DecisionKind(content.Kind), Digest: subject + content.Kind, Proposal: p.Seq}
		if len(content.Args) > 0 {
			decision.ArgsDigest = runs.DigestArgs(string(content.Args))
		}
		return decision
	}
	other := json.RawMessage(`{"a":5,"b":2}`)
	approves := propose("alice", stream.Decision{Kind: "approve", Remember: "arguments"})
	edits := propose("bob", stream.Decision{Kind: "edit", Args: other})
	c.Votes = []runs.Decision{approves, edits}
	fixture.notify(runs.EventVoted, time.Hour)
	voted := fixture.pending()[0]
	want := []inbox.Tally{{ArgsDigest: c.Approval.ArgsDigest, Decision: "approve", Votes: 1, Missing: 1}, {ArgsDigest: edits.ArgsDigest, Decision: "edit", Votes: 1, Missing: 1}}
	if diff := cmp.Diff(want, voted.Tallies); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
	mustEqual(t, "number of votes", len(voted.Decisions), 2)
	wantEqual(t, "scope of the first vote", voted.Decisions[0].Remember, "arguments")
	wantEqual(t, "arguments of the second vote", string(voted.Decisions[1].Args), string(other))
	last := func(decision runs.Decision, after time.Duration) inbox.Decision {
		t.Helper()
		c.Decision = &decision
		fixture.notify(runs.EventDecided, after)
		history := fixture.history()[0]
		if history.Status != inbox.StatusDecided || history.Tallies != nil {
			t.Errorf("audit: got %+v, want a decided approval without tallies", history)
		}
		event := history.Events[len(history.Events)-1]
		if added := event.Decisions; len(added) != 1 || !cmp.Equal(added[0], history.Decisions[len(history.Decisions)-1]) {
			t.Errorf("decisions of the event: got %+v, want the last of %+v", added, history.Decisions)
		}
		return history.Decisions[len(history.Decisions)-1]
	}
	if got := last(propose("eve", stream.Decision{Kind: "edit", Args: other}), time.Since(interruptMetadata)); got.By != "eve" || string(got.Args) != string(other) || got.ArgsDigest != edits.ArgsDigest {
		t.Errorf("edit: got %+v, want the arguments %s of eve", got, other)
	}
	x, err := fixture.store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Stop()
	if page, _, err := x.Decided("default", inbox.Filter{Agent: "a", Tool: "add", Thread: "t1"}, "", 10); err != nil || len(page) != 1 || page[0].ID != fixture.history()[0].ID {
		t.Errorf("archive: got %+v, %v, want the approval %s", page, err, fixture.history()[0].ID)
	}
}

func TestAuditOfAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text          string
		wantContent   string
		wantTruncated bool
	}{
		"short": {"ready", `"ready"`, false},
		"long":  {strings.Repeat("x", inbox.MaxArgs), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupNotifications(t)
			fixture.notify(runs.EventOpened, 0)
			seq := fixture.proposeDecision(&stream.Decision{CallID: fixture.waits.Items[0].ID, Kind: "answer", Result: &agui.Message{Role: agui.RoleTool, Content: agui.TextContent(c.text)}})
			fixture.waits.Items[0].Decision = &runs.Decision{CallID: fixture.waits.Items[0].ID, Kind: runs.DecisionAnswer, Digest: "d", Proposal: seq}
			fixture.notify(runs.EventDecided, time.Hour)
			got := fixture.history()[0].Decisions[0]
			wantEqual(t, "content of the decision", string(got.Content), c.wantContent)
			wantEqual(t, "content is truncated", got.Truncated, c.wantTruncated)
		})
	}
}

// TestAuditOfCancel: an approval that a cancel closes has the cancelling caller and the reason.
func TestAuditOfCancel(t *testing.T) {
	t.Parallel()
	fixture := setupNotifications(t)
	fixture.notify(runs.EventOpened, 0)
	if _, err := fixture.log.RequestCancel(t.Context(), run, stream.Cancel{Reason: "a duplicate", By: &auth.Principal{Tenant: "default", Subject: "ada"}}); err != nil {
		t.Fatal(err)
	}
	fixture.waits.Items[0].Decision = &runs.Decision{CallID: fixture.waits.Items[0].ID, Kind: runs.DecisionCancel}
	fixture.notify(runs.EventDecided, time.Hour)
	got := fixture.history()[0].Decisions[0]
	wantEqual(t, "kind of the decision", got.Decision, "cancel")
	wantEqual(t, "approver of the decision", got.By, "ada")
	wantEqual(t, "reason of the decision", got.Reason, "a duplicate")
	wantEqual(t, "decision has no time", got.At.IsZero(), false)
}
