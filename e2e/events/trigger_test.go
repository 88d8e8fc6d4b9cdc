package events

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// intake is an agent that an event starts.
const intake = `
name: intake
model: openai/mock
triggers:
  - event: order.created
    match: {country: DE}
    thread: order-${event.data.id}
    input: Order ${event.data.id} of ${event.source}
steps:
  - name: note
    set: [{path: /seen, value: "${messages.map(m, m.content)}"}]
`

// order returns an event about a new order.
func order(id, country string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":"o-%s","source":"/shop","type":"order.created","data":{"id":%q,"country":%q}}`, id, id, country)
}

// TestEventTriggersRun: an event starts one run of an agent whose trigger it matches, on the thread that
// the trigger names, also if it is sent twice and the process is killed at once.
func TestEventTriggersRun(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, intake)
	for _, id := range []string{"a", "b"} {
		for range 2 {
			if err := post(p.Endpoint, "/v1/events", "application/cloudevents+json", order(id, "DE")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := post(p.Endpoint, "/v1/events", "application/cloudevents+json", order("c", "FR")); err != nil {
		t.Fatal(err)
	}
	p.Restart(t)
	for _, id := range []string{"a", "b"} {
		in := kit.NewInput("read")
		in.ThreadID = "order-" + id
		awaitThread(t, p.Endpoint, in.ThreadID)
		f := p.NewFollower(t, in)
		f.AttachPath = "/v1/threads/" + in.ThreadID + "/events"
		f.UntilSuccess(t)
		messages := p.MessagesOf(t, in.ThreadID)
		if want := "Order " + id + " of /shop"; len(messages) != 1 || messages[0].Content != want {
			t.Errorf("messages of %s = %+v, want one: %q", in.ThreadID, messages, want)
		}
		wantTriggerEvent(t, p, in.ThreadID, triggerEvent{ID: "o-" + id, Source: "/shop", Type: "order.created"})
	}
	var page struct{ Items []struct{ ThreadID string } }
	p.GetJSON(t, "/v1/threads", &page)
	if len(page.Items) != 2 {
		t.Errorf("threads = %+v, want two", page.Items)
	}
}

// triggerEvent is the event that started a run, as the API shows it.
type triggerEvent struct{ ID, Source, Type string }

// wantTriggerEvent compares the event that started the only run of a thread: in the list of runs, in the
// thread, in the run, in its trace, and in the metadata of RUN_STARTED. A further run, which a client starts, has none.
func wantTriggerEvent(t *testing.T, p *kit.Perdure, thread string, want triggerEvent) {
	t.Helper()
	type run struct {
		RunID string
		Event *triggerEvent
	}
	var page struct{ Items []run }
	p.GetJSON(t, "/v1/threads/"+thread+"/runs", &page)
	if len(page.Items) != 1 {
		t.Fatalf("runs of %s = %+v, want one", thread, page.Items)
	}
	first := page.Items[0]
	var shown, traced, summary run
	path := "/v1/threads/" + thread + "/runs/" + first.RunID
	p.GetJSON(t, path, &shown)
	p.GetJSON(t, path+"/trace", &traced)
	p.GetJSON(t, "/v1/threads/"+thread, &summary)
	f := p.NewFollower(t, kit.Input{ThreadID: thread})
	f.AttachPath = path + "/events"
	f.UntilSuccess(t)
	var started struct {
		Metadata struct {
			Event *triggerEvent `json:"perdure.event"`
		}
	}
	if err := json.Unmarshal(f.Events[0].Data, &started); err != nil {
		t.Fatal(err)
	}
	for where, got := range map[string]*triggerEvent{"list of runs": first.Event, "thread": summary.Event, "run": shown.Event, "trace": traced.Event, "RUN_STARTED": started.Metadata.Event} {
		if got == nil || *got != want {
			t.Errorf("event of %s in the %s = %+v, want %+v", thread, where, got, want)
		}
	}
	in := kit.NewInput("And now?")
	in.ThreadID = thread
	events := p.RunAgent(t, "/v1/agents/intake/runs", in)
	if strings.Contains(string(events[0].Data), "perdure.event") {
		t.Errorf("a run of a client begins with %s, want no event", events[0].Data)
	}
	var later run
	if p.GetJSON(t, "/v1/threads/"+thread, &later); later.Event != nil {
		t.Errorf("event of %s after a run of a client = %+v, want none", thread, later.Event)
	}
	var both struct{ Items []run }
	p.GetJSON(t, "/v1/threads/"+thread+"/runs", &both)
	if len(both.Items) != 2 || both.Items[0].Event != nil || both.Items[1].Event == nil {
		t.Errorf("runs of %s = %+v, want an event of the older one only", thread, both.Items)
	}
}

// TestTriggersBeyondQueue: each of many events for one thread has its run, although the queue of the thread
// holds fewer.
func TestTriggersBeyondQueue(t *testing.T) {
	t.Parallel()
	const further = 40 // more than a queue holds
	p := kit.SetupWith(t, `
name: sorter
model: openai/mock
triggers:
  - {event: item.added, thread: items, input: "${event.data.text}"}
`)
	prompt := kit.Marked("Sort this.")
	first := 0
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, SequenceIndex: &first}, Response: kit.Response{Content: strings.Repeat("slowly ", 30)}, Latency: 100, ChunkSize: 4},
		kit.Fixture{Match: kit.Match{UserMessage: prompt}, Response: kit.Response{Content: "Sorted."}})
	item := func(i int) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/shop","type":"item.added","data":{"text":%q}}`, i, prompt)
	}
	if err := post(p.Endpoint, "/v1/events", "application/cloudevents+json", item(0)); err != nil {
		t.Fatal(err)
	}
	awaitThread(t, p.Endpoint, "items")
	items := make([]string, further)
	for i := range items {
		items[i] = item(i + 1)
	}
	if err := post(p.Endpoint, "/v1/events", "application/cloudevents-batch+json", "["+strings.Join(items, ",")+"]"); err != nil {
		t.Fatal(err)
	}
	p.Output.Await(t, "the queue of the thread is full")
	for late := time.Now().Add(2 * kit.WaitTimeout); ; {
		answers := 0
		for _, m := range p.MessagesOf(t, "items") {
			if m.Role == "assistant" {
				answers++
			}
		}
		if answers == further+1 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("answers = %d, want %d: one for each event", answers, further+1)
		}
		<-time.After(50 * time.Millisecond) // poll interval
	}
}

// awaitThread blocks until a thread exists.
func awaitThread(t *testing.T, p *kit.Endpoint, id string) {
	t.Helper()
	for late := time.Now().Add(kit.WaitTimeout); ; {
		resp, err := p.Get(t.Context(), "/v1/threads/"+url.PathEscape(id), "")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // only the status counts
		if resp.StatusCode == 200 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("thread %s: got %s", id, resp.Status)
		}
	}
}
