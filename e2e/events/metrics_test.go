package events

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// answering has agents whose answers are valid at once, after a repair, and never.
const answering = `---
name: right
model: scripted/right
output: {schema: {type: integer}}
---
name: repaired
model: scripted/repaired
output: {schema: {type: integer}}
---
name: wrong
model: scripted/wrong
output: {schema: {type: integer}, repairs: 1}
---
kind: script
name: right
turns: [{steps: [{say: "1"}]}]
---
kind: script
name: repaired
turns: [{when: is not valid, steps: [{say: "1"}]}, {steps: [{say: "One."}]}]
---
kind: script
name: wrong
turns: [{steps: [{say: "One."}]}]
`

// TestMetricsOfWaits: metrics count open waits and how waits have ended, what has happened to events, and
// whether answers fit their schemas. They have no text of events and answers.
func TestMetricsOfWaits(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(definitions+"---"+intake+answering), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{kit.MetricsEnv}
	p.InspectAtEnd(t)
	p.Start(t)

	fired, _ := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "1s"})
	fired.UntilSuccess(t)
	continued, timer := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "3d"})
	delivered, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 1, "timeout": "1h"})
	late, _ := begin(t, p, "order", "perdure:event", map[string]any{"order": 2, "timeout": "1s"})
	late.UntilSuccess(t)
	rejected, event := begin(t, p, "order", "perdure:event", map[string]any{"order": 3, "timeout": "1h"})
	last, lastEvent := begin(t, p, "order", "perdure:event", map[string]any{"order": 4, "timeout": "1h"})
	cancelled, day := begin(t, p, "pause", "perdure:timer", map[string]any{"nap": "3d"})
	awaitWait(t, p.Endpoint, cancelled.In.ThreadID)
	open := []string{"perdure_waits_open"}
	p.AwaitMetrics(t, open, `perdure_waits_open{kind="event"} 3`, `perdure_waits_open{kind="timer"} 2`)

	for _, decision := range []struct {
		f    *kit.Follower
		of   kit.Interrupt
		body string
	}{
		{continued, timer, `{"decision":"answer","content":{}}`},
		{cancelled, day, `{"decision":"reject"}`},
		{rejected, event, `{"decision":"reject","reason":"sold out"}`},
	} {
		if status, a := kit.Decide(t, p.Endpoint, decision.f.In.ThreadID, decision.of.ID, decision.body); status != http.StatusOK {
			t.Fatalf("decision: got %d %v", status, a)
		}
	}
	continued.UntilSuccess(t)
	for range 2 {
		sendEvent(t, p.Endpoint, "paid", 1)
	}
	delivered.UntilSuccess(t)
	sendEvent(t, p.Endpoint, "other", 9)
	if err := post(p.Endpoint, "/v1/events", "application/cloudevents+json", order("x", "DE")); err != nil {
		t.Fatal(err)
	}
	p.AwaitMetrics(t, []string{"perdure_waits_ended"},
		`perdure_waits_ended_total{end="fired",kind="timer"} 1`, `perdure_waits_ended_total{end="continued",kind="timer"} 1`, `perdure_waits_ended_total{end="cancelled",kind="timer"} 1`,
		`perdure_waits_ended_total{end="event",kind="event"} 1`, `perdure_waits_ended_total{end="timed_out",kind="event"} 1`, `perdure_waits_ended_total{end="cancelled",kind="event"} 1`)
	p.AwaitMetrics(t, []string{"perdure_events"},
		`perdure_events_total{outcome="received",source="api"} 3`, `perdure_events_total{outcome="duplicate",source="api"} 1`, `perdure_events_total{outcome="delivered",source="api"} 1`,
		`perdure_events_total{outcome="unmatched",source="api"} 1`, `perdure_events_total{outcome="triggered",source="api"} 1`)
	p.AwaitMetrics(t, open, `perdure_waits_open{kind="event"} 1`, `perdure_waits_open{kind="timer"} 0`)

	if status, a := kit.Decide(t, p.Endpoint, last.In.ThreadID, lastEvent.ID, `{"decision":"reject"}`); status != http.StatusOK {
		t.Fatalf("decision: got %d %v", status, a)
	}
	for _, f := range []*kit.Follower{last, rejected} {
		f.UntilSuccess(t)
	}
	cancelled.Until(t, func(e kit.Event) bool { return e.Type == "RUN_ERROR" })
	for _, agent := range []string{"right", "repaired", "wrong"} {
		p.RunAgent(t, "/v1/agents/"+agent+"/runs", kit.NewInput(strings.ToUpper(agent)))
	}
	p.AwaitMetrics(t, []string{"perdure_outputs"}, `perdure_outputs_total{agent="right",outcome="valid"} 1`,
		`perdure_outputs_total{agent="repaired",outcome="repaired"} 1`, `perdure_outputs_total{agent="wrong",outcome="failed"} 1`)
}
