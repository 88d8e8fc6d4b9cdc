package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/stream"
)

// setupEvents returns a server that takes events and lists waits, each of a thread of its own. The
// caller has a role.
func setupEvents(t *testing.T, role string, waits ...*events.Wait) *node {
	t.Helper()
	return setup(t, func(c *api.Config) {
		store, err := events.Open(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range waits {
			p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: w.Tenant, ID: w.ThreadID}, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
			if _, err := c.Log.OpenStep(t.Context(), p, stream.Opening{RunID: "r", Execution: "e", ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: w.ThreadID, RunID: "r"}); err != nil {
				t.Fatal(err)
			}
			if err := store.Register(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		if c.Waits, err = store.Watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Waits.Stop)
		c.Events, c.Auth = store, &auth.Anonymous{Roles: []string{role}}
	})
}

const (
	structured = "application/cloudevents+json"
	batch      = "application/cloudevents-batch+json"
)

// TestEventsAreTakenInAllForms: the three forms of the HTTP binding of CloudEvents 1.0 are the same
// events, so a further one is a duplicate.
func TestEventsAreTakenInAllForms(t *testing.T) {
	t.Parallel()
	node := setupEvents(t, "events")
	const event = `{"specversion":"1.0","id":"e1","source":"/shop","type":"payment.received","data":{"amount":70}}`
	first := node.do(http.MethodPost, "/v1/events", event, "Content-Type", structured)
	first.mustStatus(t, "status of a structured event", http.StatusAccepted)
	wantEqual(t, "receipt", strings.TrimSpace(first.body), `{"id":"e1","source":"/shop","duplicate":false}`)

	binary := node.do(http.MethodPost, "/v1/events", `{"amount":70}`, "Content-Type", "application/json",
		"ce-specversion", "1.0", "ce-id", "e1", "ce-source", "/shop", "ce-type", "payment.received")
	binary.mustStatus(t, "status of a binary event", http.StatusAccepted)
	wantEqual(t, "receipt of the same event", strings.TrimSpace(binary.body), `{"id":"e1","source":"/shop","duplicate":true}`)

	encoded := node.do(http.MethodPost, "/v1/events", "", "ce-specversion", "1.0", "ce-id", `"100%25 \"%C3%BC\""`, "ce-source", "/a%2520b", "ce-type", "t")
	encoded.mustStatus(t, "status of encoded attributes", http.StatusAccepted)
	wantEqual(t, "receipt of encoded attributes", strings.TrimSpace(encoded.body), `{"id":"100% \"ü\"","source":"/a%20b","duplicate":false}`)
	encoded = node.do(http.MethodPost, "/v1/events", "", "ce-specversion", "1.0", "ce-id", "100%", "ce-source", "/s", "ce-type", "t")
	wantEqual(t, "receipt of an incomplete encoding", strings.TrimSpace(encoded.body), `{"id":"100%","source":"/s","duplicate":false}`)

	other := strings.Replace(event, `"e1"`, `"e2"`, 1)
	several := node.do(http.MethodPost, "/v1/events", "["+event+","+other+"]", "Content-Type", batch)
	several.mustStatus(t, "status of a batch", http.StatusAccepted)
	wantEqual(t, "receipts of a batch", strings.TrimSpace(several.body),
		`{"items":[{"id":"e1","source":"/shop","duplicate":true},{"id":"e2","source":"/shop","duplicate":false}]}`)
}

func TestInvalidEventsAreRefused(t *testing.T) {
	t.Parallel()
	node := setupEvents(t, "events")
	long := strings.Repeat("x", 257)
	tests := []struct{ name, media, body, pointer string }{
		{"not JSON", structured, `{`, ""},
		{"no CloudEvent", "application/json", `{}`, ""},
		{"no ID", structured, `{"specversion":"1.0","source":"/s","type":"t"}`, "/id"},
		{"long type", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"` + long + `"}`, "/type"},
		{"second of a batch", batch, `[{"specversion":"1.0","id":"1","source":"/s","type":"t"},{"specversion":"1.0","source":"/s","type":"t"}]`, "/1/id"},
		{"nested data", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "/data"},
		{"version 0.3", structured, `{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, "/specversion"},
		{"version 2.0", structured, `{"specversion":"2.0","id":"1","source":"/s","type":"t"}`, "/specversion"},
		{"no version", structured + "; charset=utf-8", `{"id":"1","source":"/s","type":"t"}`, "/specversion"},
		{"version of a batch", batch, `[{"specversion":"1.0","id":"1","source":"/s","type":"t"},{"specversion":"0.3","id":"1","source":"/s","type":"t"}]`, "/1/specversion"},
		{"two data", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1,"data_base64":"MQ=="}`, "/data_base64"},
		{"two data in another order", structured, `{"data_base64":"MQ==","data":1,"specversion":"1.0","id":"1","source":"/s","type":"t"}`, "/data_base64"},
		{"base64 that is a number", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":5}`, "/data_base64"},
		{"base64 that is null", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":null}`, "/data_base64"},
		{"base64 that is invalid", batch, `[{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"!"}]`, "/0/data_base64"},
		{"ID that is a number", structured, `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, "/id"},
		{"time in words", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"today"}`, "/time"},
		{"extension that is an object", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","x":{}}`, "/x"},
		{"member without a name", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","":1,"data":1}`, "/"},
		{"object as text", structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"text/plain","data":{}}`, "/data"},
		{"array", structured, `[]`, ""},
		{"null in a batch", batch, `[null]`, "/0"},
		{"object as a batch", batch, `{}`, ""},
		{"empty batch", batch, `[]`, ""},
	}
	for _, tt := range tests {
		a := node.do(http.MethodPost, "/v1/events", tt.body, "Content-Type", tt.media)
		a.wantStatus(t, tt.name, http.StatusBadRequest)
		wantEqual(t, tt.name+": code", a.problem.Code, "invalid_event")
		wantEqual(t, tt.name+": pointer", a.problem.Pointer, tt.pointer)
		if strings.HasPrefix(tt.name, "two data") && !strings.Contains(a.problem.Detail, "data or data_base64") {
			t.Errorf("%s: detail = %q, want both members", tt.name, a.problem.Detail)
		}
	}
	a := node.do(http.MethodPost, "/v1/events", `1`, "Content-Type", "application/json",
		"ce-specversion", "0.3", "ce-id", "e1", "ce-source", "/shop", "ce-type", "payment.received")
	a.wantStatus(t, "version 0.3 in binary mode", http.StatusBadRequest)
	wantEqual(t, "pointer in binary mode", a.problem.Pointer, "/specversion")
}

// TestEventsNeedARole: callers without the role cannot continue the runs of others by an event.
func TestEventsNeedARole(t *testing.T) {
	t.Parallel()
	node := setupEvents(t, "user")
	a := node.do(http.MethodPost, "/v1/events", `{"specversion":"1.0","id":"e1","source":"/s","type":"t"}`, "Content-Type", structured)
	a.wantStatus(t, "status", http.StatusForbidden)
	wantEqual(t, "code", a.problem.Code, "forbidden")
}

// TestWaitsAreListed: pages have each wait once, those that end first at the beginning.
func TestWaitsAreListed(t *testing.T) {
	t.Parallel()
	var waits []*events.Wait
	for i, kind := range []stream.WaitKind{stream.WaitTimer, stream.WaitEvent, stream.WaitEvent} {
		w := &events.Wait{
			ID: fmt.Sprintf("int_%d", i), Tenant: "default", ThreadID: fmt.Sprintf("t%d", i), RunID: "r", Agent: "a", Kind: kind,
			Message: "Waits.", OpenedAt: since, Until: since.Add(time.Duration(10-i) * time.Hour), CallID: "c", Number: 1, RunRef: "r",
		}
		if kind == stream.WaitEvent {
			w.Event, w.Match = fmt.Sprintf("event.%d", i), map[string]any{"order.id": "A-1"}
		}
		waits = append(waits, w)
	}
	node := setupEvents(t, policy.DefaultRoles.TenantAdmin, waits...)
	list := func(query string) (ids []string, next string) {
		a := node.do(http.MethodGet, "/v1/waits"+query, "")
		a.mustStatus(t, "status of "+query, http.StatusOK)
		var page struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, w := range page.Items {
			ids = append(ids, w.ID)
		}
		return ids, page.NextCursor
	}
	first, cursor := list("?limit=2")
	wantEqual(t, "first page", first, []string{"int_2", "int_1"})
	rest, cursor := list("?limit=2&cursor=" + cursor)
	wantEqual(t, "second page", rest, []string{"int_0"})
	wantEqual(t, "cursor of the last page", cursor, "")
	for query, want := range map[string]string{"?kind=timer": "int_0", "?event=event.1": "int_1", "?thread=t2": "int_2"} {
		ids, _ := list(query)
		wantEqual(t, "waits of "+query, ids, []string{want})
	}
	a := node.do(http.MethodGet, "/v1/waits?kind=approval", "")
	a.wantStatus(t, "another kind", http.StatusBadRequest)
	wantEqual(t, "parameter", a.problem.Parameter, "kind")
}
