package events

import (
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
	}
	var page struct{ Items []struct{ ThreadID string } }
	p.GetJSON(t, "/v1/threads", &page)
	if len(page.Items) != 2 {
		t.Errorf("threads = %+v, want two", page.Items)
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
