package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// TestEventsAreSentAgain: an event whose answer is lost is sent again, with the same ID.
func TestEventsAreSentAgain(t *testing.T) {
	t.Parallel()
	var bodies []string
	answer := func(cut bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
			if cut {
				w.Header().Set("Content-Length", "1000")
			}
			fmt.Fprint(w, `{"id":"e1","source":"/shop","duplicate":true}`)
		}
	}
	s := serve(t, answer(true), answer(false))
	got, err := s.client(t, client.Config{}).SendEvent(t.Context(), client.CloudEvent{ID: "e1", Source: "/shop", Type: "paid", Data: map[string]int{"amount": 70}})
	if err != nil || got.Value != (client.EventReceipt{ID: "e1", Source: "/shop", Duplicate: true}) {
		t.Errorf("receipt = %+v, %v, want that of the duplicate", got.Value, err)
	}
	want := `POST /v1/events application/cloudevents+json {"specversion":"1.0","id":"e1","source":"/shop","type":"paid","data":{"amount":70}}`
	if len(bodies) != 2 || bodies[0] != want || bodies[1] != want {
		t.Errorf("requests = %q, want %q twice", bodies, want)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	var requests []string
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			requests = append(requests, r.Method+" "+r.URL.RequestURI()+" "+string(body))
			fmt.Fprint(w, text)
		}
	}
	s := serve(t, answer(`{"items":[{"id":"int_1","threadId":"t","kind":"event","event":"paid","match":{"n":1},"until":"2026-03-01T08:00:00Z"}]}`),
		answer(`{"items":[{"id":"int_1","status":200}]}`), answer(`{"items":[{"id":"int_1","status":200}]}`), answer(`{"items":[{"id":"int_1","status":410,"code":"expired"}]}`))
	c := s.client(t, client.Config{})
	list, err := c.Waits(t.Context(), client.WaitFilter{Kind: client.WaitEvent, Event: "paid"}, client.Paging{Limit: 5})
	if err != nil || len(list.Value.Items) != 1 || list.Value.Items[0].Event != "paid" || list.Value.Items[0].Until.Hour() != 8 {
		t.Errorf("waits = %+v, %v, want the one for the event paid", list.Value, err)
	}
	if err := c.ContinueWait(t.Context(), "t", "int_1", map[string]int{"amount": 70}); err != nil {
		t.Error(err)
	}
	if err := c.CancelWait(t.Context(), "t", "int_1", "sold out"); err != nil {
		t.Error(err)
	}
	if err := c.ContinueWait(t.Context(), "t", "int_1", nil); client.Code(err) != "expired" {
		t.Errorf("ContinueWait = %v, want the code expired", err)
	}
	for i, want := range []string{
		"GET /v1/waits?event=paid&kind=event&limit=5 ",
		`POST /v1/approvals/batch {"decisions":[{"threadId":"t","id":"int_1","decision":"answer","content":{"data":{"amount":70}}}]}`,
		`POST /v1/approvals/batch {"decisions":[{"threadId":"t","id":"int_1","decision":"reject","reason":"sold out"}]}`,
		`POST /v1/approvals/batch {"decisions":[{"threadId":"t","id":"int_1","decision":"answer","content":{"data":null}}]}`,
	} {
		if requests[i] != want {
			t.Errorf("request %d = %s, want %s", i, requests[i], want)
		}
	}
}

func TestWaitOfInterrupt(t *testing.T) {
	t.Parallel()
	i := agui.Interrupt{ID: "int_1", Reason: "perdure:event", Message: "Waits.", ExpiresAt: "2026-03-01T08:00:00.5Z",
		Metadata: agui.Metadata{"perdure.wait": json.RawMessage(`{"kind":"event","event":"paid"}`)}}
	w := client.WaitOf(i)
	if w == nil || w.Kind != client.WaitEvent || w.Event != "paid" || !w.Until.Equal(time.Date(2026, 3, 1, 8, 0, 0, 5e8, time.UTC)) {
		t.Errorf("wait = %+v, want that for the event paid", w)
	}
	if w := client.WaitOf(agui.Interrupt{ID: "int_2", Reason: "tool_call"}); w != nil {
		t.Errorf("wait of an approval = %+v, want none", w)
	}
}
