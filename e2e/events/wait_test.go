package events

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// definitions are the agents of the tests. The prompt of reminder makes its model call a tool.
const definitions = `
name: pause
model: openai/mock
steps:
  - name: nap
    wait: {for: "${state.nap}"}
  - name: done
    set: [{path: /early, value: "${steps.nap.early}"}]
---
name: order
model: openai/mock
limits: {wait: 2d}
steps:
  - name: paid
    event: {name: payment.received, match: {orderId: "${state.order}"}, timeout: "${state.timeout}"}
    onError:
      steps:
        - name: late
          set: [{path: /failure, value: "${error.code}"}]
  - name: done
    when: '"paid" in steps'
    set: [{path: /amount, value: "${steps.paid.data.amount}"}, {path: /event, value: "${steps.paid.id}"}]
---
name: reminder
model: openai/mock
tools: [wait]
`

// openWait is a wait in the answer of GET /v1/waits.
type openWait struct {
	ID, ThreadID, Kind, Event string
	Match                     map[string]any
	Until                     time.Time
}

// waitsOf returns the open waits of a thread.
func waitsOf(t *testing.T, p *kit.Endpoint, thread string) []openWait {
	t.Helper()
	var page struct{ Items []openWait }
	p.GetJSON(t, "/v1/waits?thread="+url.QueryEscape(thread), &page)
	return page.Items
}

// awaitWait blocks until a thread has one open wait.
func awaitWait(t *testing.T, p *kit.Endpoint, thread string) openWait {
	t.Helper()
	for late := time.Now().Add(kit.WaitTimeout); ; {
		if all := waitsOf(t, p, thread); len(all) == 1 {
			return all[0]
		}
		if time.Now().After(late) {
			t.Fatalf("waits of the thread %s: got %v, want one", thread, waitsOf(t, p, thread))
		}
	}
}

// begin starts a run of an agent with a state, and reads it until it waits.
func begin(t *testing.T, p *kit.Perdure, agent, reason string, state any) (*kit.Follower, kit.Interrupt) {
	t.Helper()
	in := kit.NewInput("go")
	in.State = state
	f := p.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
	interrupts := f.UntilInterrupt(t, reason)
	if len(interrupts) != 1 {
		t.Fatalf("interrupts = %v, want one", interrupts)
	}
	f.AttachPath = "/v1/threads/" + in.ThreadID + "/events"
	return f, interrupts[0]
}

// stateOf is the part of the state that the tests compare.
type stateOf struct {
	Early   *bool
	Amount  float64
	Event   string
	Failure string
}

// readState returns the state of a thread.
func readState(t *testing.T, p *kit.Endpoint, in kit.Input) (s stateOf) {
	t.Helper()
	raw, err := json.Marshal(p.StateOf(t, in))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTimerSurvivesKill: a run waits for a time, is listed as waiting and not in the inbox, and
// continues at that time although the process was killed meanwhile.
func TestTimerSurvivesKill(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, definitions)
	f, interrupt := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "8s"})
	w := awaitWait(t, p.Endpoint, f.In.ThreadID)
	if w.Kind != "timer" || w.ID != interrupt.ID || time.Until(w.Until) > 8*time.Second {
		t.Errorf("wait = %+v, want the timer %s of 8 s", w, interrupt.ID)
	}
	if page := p.AwaitPending(t, "", nil...); len(page.Items) != 0 {
		t.Errorf("the inbox has %v, want nothing", page.Items)
	}
	p.Restart(t)
	f.UntilSuccess(t)
	if late := time.Since(w.Until); late < 0 {
		t.Errorf("the run continued %s before its time", -late)
	}
	if s := readState(t, p.Endpoint, f.In); s.Early == nil || *s.Early {
		t.Errorf("early = %v, want false", s.Early)
	}
	if all := waitsOf(t, p.Endpoint, f.In.ThreadID); len(all) > 0 {
		t.Errorf("waits after the end = %v, want none", all)
	}
}

// TestTimerContinuesEarly: a caller continues a run before its time.
func TestTimerContinuesEarly(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, definitions)
	f, interrupt := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "3d"})
	if status, a := kit.Decide(t, p.Endpoint, f.In.ThreadID, interrupt.ID, `{"decision":"answer","content":{}}`); status != http.StatusOK {
		t.Fatalf("answer: got %d %v", status, a)
	}
	f.UntilSuccess(t)
	if s := readState(t, p.Endpoint, f.In); s.Early == nil || !*s.Early {
		t.Errorf("early = %v, want true", s.Early)
	}
}

// sendEvent sends an event with the amount 5 for an order.
func sendEvent(t *testing.T, p *kit.Endpoint, id string, order int) {
	t.Helper()
	if err := post(p, "/v1/events", "application/cloudevents+json", paid(id, order)); err != nil {
		t.Fatal(err)
	}
}

// TestEventContinuesRun: an event continues the runs that it matches, whether it arrives before or
// after they wait.
func TestEventContinuesRun(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, definitions)
	f, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 1, "timeout": "1h"})
	sendEvent(t, p.Endpoint, "other", 2)
	sendEvent(t, p.Endpoint, "first", 1)
	f.UntilSuccess(t)
	if s := readState(t, p.Endpoint, f.In); s.Amount != 5 || s.Event != "first" {
		t.Errorf("state = %+v, want the amount of the event first", s)
	}
	early, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 2, "timeout": "1h"})
	early.UntilSuccess(t)
	if s := readState(t, p.Endpoint, early.In); s.Event != "other" {
		t.Errorf("state = %+v, want the event other", s)
	}
}

// TestEventTimeout: a run whose event does not arrive in time continues with the failure timeout. A
// timeout above the limit of the agent fails the step.
func TestEventTimeout(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, definitions)
	f, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 1, "timeout": "1s"})
	f.UntilSuccess(t)
	if s := readState(t, p.Endpoint, f.In); s.Failure != "timeout" {
		t.Errorf("failure = %q, want timeout", s.Failure)
	}
	in := kit.NewInput("go")
	in.State = json.RawMessage(`{"order":1,"timeout":"3d"}`)
	p.RunAgent(t, "/v1/agents/order/runs", in)
	if s := readState(t, p.Endpoint, in); s.Failure != "tool_failed" {
		t.Errorf("failure = %q, want tool_failed", s.Failure)
	}
}
