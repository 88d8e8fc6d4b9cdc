package agents_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

const triggered = "name: intake\nmodel: p/m\ntriggers:\n  - event: order.created\n    match: {country: DE, sum: 9007199254740993}\n    runAs: shop\n" +
	"    thread: order-${event.data.id}\n    input: Order ${event.data.id}\n"

// TestTriggerEvaluates: the templates of a trigger have the event, and a definition with triggers keeps
// its revision when it is stored and read.
func TestTriggerEvaluates(t *testing.T) {
	t.Parallel()
	located, err := agents.Parse("a.yaml", []byte(triggered))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := agents.Encode(located)
	if err != nil {
		t.Fatal(err)
	}
	d, err := agents.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if d.Revision() != located.Revision() {
		again, _ := agents.Encode(d)
		t.Errorf("the definition has another revision after it was stored: %s, then %s", encoded, again)
	}
	thread, message, err := d.Triggers[0].Evaluate(expression.Decode([]byte(`{"type":"order.created","data":{"id":7}}`)))
	if thread != "order-7" || message != "Order 7" || err != nil {
		t.Errorf("Evaluate = %q, %q, %v", thread, message, err)
	}
	if _, _, err := d.Triggers[0].Evaluate(expression.Decode([]byte(`{"data":{}}`))); err == nil || !strings.Contains(err.Error(), "thread") {
		t.Errorf("Evaluate without a value: got %v, want an error about the thread", err)
	}
}

// TestInvalidTriggers: mistakes in triggers name the key.
func TestInvalidTriggers(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"- {input: x}":                            "triggers[0].event is missing",
		"- {event: a}":                            "triggers[0].input is missing",
		"- {event: a, input: \"${state.x}\"}":     "triggers[0].input",
		"- {event: a, input: x, match: {b: [1]}}": "triggers[0].match",
		"- {event: a, input: x, match: {b: " + strings.Repeat("x", 1<<10-1) + "}}": `triggers[0].match "b" must have at most 1024 bytes as JSON`,
		"- {event: a, input: x, onBusy: steer}":                                    "triggers[0].onBusy",
		"- {event: a, input: x, thread: \"${event\"}":                              "triggers[0].thread",
		"- {event: a, input: x, principal: ann}":                                   "principal",
	} {
		_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntriggers:\n  "+yaml+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
	}
}

// TestInvalidWaits: mistakes in the short forms of steps that wait.
func TestInvalidWaits(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"wait: {}":                                 "either for or until",
		"wait: {for: 1h, until: \"2030-01-01\"}":   "either for or until",
		"wait: {for: 1h, timezone: UTC}":           "timezone",
		"wait: {for: 1ms}":                         "at least a second",
		"wait: {for: 31d}":                         "limits.wait",
		"event: {match: {a: 1}}":                   "needs name",
		"event: {name: a, timeout: soon}":          "timeout",
		"{event: {name: a}, args: {x: 1}}":         "exclude each other",
		"{wait: {for: 1h}, event: {name: a}}":      "exclude each other",
		"{tool: calculate, wait: {for: 1h}}":       "exclude each other",
		"{wait: {for: 1h}, approve: {message: x}}": "exclude each other",
	} {
		if !strings.HasPrefix(yaml, "{") {
			yaml = "{" + yaml + "}"
		}
		step := "{name: s, " + yaml[1:]
		_, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: [calculate]\nsteps:\n  - "+step+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
	}
}

// TestTriggerThread: an event cannot name a thread that a client cannot name. Threads with control
// characters in their IDs are reserved, for example for keys.
func TestTriggerThread(t *testing.T) {
	t.Parallel()
	trigger := agents.Trigger{Event: "e", Thread: "${event.data}", Input: "x"}
	for data, isID := range map[string]bool{
		"order-1": true, "ü/日本 1": true, "nullable": true, "": false, " \u2003\u00a0": false, "null": false, "\x00events": false, "a\nb": false, "a\u0085": false, "a\ufffd": false,
	} {
		thread, _, err := trigger.Evaluate(map[string]any{"data": data})
		if (err == nil) != isID || isID && thread != data {
			t.Errorf("thread of %q = %q, error %v; want an ID: %v", data, thread, err, isID)
		}
	}
}

// TestTriggerThreadIsNotNull: events without a value do not share a thread.
func TestTriggerThreadIsNotNull(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"${event.data.id}", "order-${event.data.id}"} {
		trigger := agents.Trigger{Event: "e", Thread: template, Input: "order ${event.data.id}"}
		thread, _, err := trigger.Evaluate(expression.Decode([]byte(`{"data":{"id":null}}`)))
		if err == nil || !strings.Contains(err.Error(), "thread") || !strings.Contains(err.Error(), "null") {
			t.Errorf("thread of %s = %q, error %v; want one that names thread and null", template, thread, err)
		}
	}
	trigger := agents.Trigger{Event: "e", Input: "order ${event.data.id}"}
	if _, message, err := trigger.Evaluate(expression.Decode([]byte(`{"data":{"id":null}}`))); message != "order null" || err != nil {
		t.Errorf("message = %q, %v", message, err)
	}
}

// TestRevisionsOfTriggersConcurrently: goroutines that share a definition made in Go may compute its
// revision concurrently, and the definition keeps the values that it has.
func TestRevisionsOfTriggersConcurrently(t *testing.T) {
	t.Parallel()
	d, err := agents.New(agents.Definition{Name: "intake", Model: "p/m", Triggers: []agents.Trigger{{Event: "order.created", Input: "Go on.", OnBusy: "enqueue"}}})
	if err != nil {
		t.Fatal(err)
	}
	plain := *d
	plain.Triggers = []agents.Trigger{{Event: "order.created", Input: "Go on."}}
	want := plain.Revision()
	var computing sync.WaitGroup
	for range 8 {
		computing.Go(func() {
			if got := d.Revision(); got != want {
				t.Errorf("revision = %s, want that without the default, %s", got, want)
			}
		})
	}
	computing.Wait()
	if got := d.Triggers[0].OnBusy; got != "enqueue" {
		t.Errorf("onBusy = %q after Revision, want what the definition had: enqueue", got)
	}
}
