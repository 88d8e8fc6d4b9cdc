package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openWaits is a page with a wait for an event and one for a time.
const openWaits = `{"items":[
	{"id":"int_1","threadId":"t1","agent":"order","kind":"event","event":"paid","match":{"order.id":"A-1","n":2},"until":"2026-03-01T08:00:00Z"},
	{"id":"int_2","threadId":"t2","agent":"reminder","kind":"timer","until":"2026-03-02T08:00:00Z"}]}`

// receive returns a handler that stores the body of a request.
func receive(into *string, answer string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*into = string(body)
		respondWith(answer)(w, r)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	var sent string
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/waits?agent=order&kind=event&limit=2": respondWith(openWaits),
		"GET /v1/waits?limit=500":                      respondWith(openWaits),
		"GET /v1/waits":                                respondWith(openWaits),
		"POST /v1/approvals/batch":                     receive(&sent, `{"items":[{"id":"int_1","status":200,"decision":"answer"}]}`),
	})
	until := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05 MST")
	got := run(t, environ, "", "waits", "--agent", "order", "--kind", "event", "--limit", "2")
	if want := `int_1   event paid n=2 order.id="A-1"   ` + until + "   order      t1\n"; !strings.Contains(got.out, want) || !strings.Contains(got.out, "int_2   time  ") {
		t.Errorf("waits = %q, want the line %q, and a time", got.out, want)
	}
	run(t, environ, "", "waits", "continue", "int_1", "--data", `{"amount":70}`).want(t, 0, "int_1: answer\n", "")
	if want := `{"decisions":[{"threadId":"t1","id":"int_1","decision":"answer","content":{"data":{"amount":70}}}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "waits", "continue", "int_9", "--thread", "t9").want(t, 0, "int_1: answer\n", "")
	if want := `{"decisions":[{"threadId":"t9","id":"int_9","decision":"answer","content":{"data":null}}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "waits", "cancel", "int_2", "--reason", "sold out").want(t, 0, "int_1: answer\n", "")
	if want := `{"decisions":[{"threadId":"t2","id":"int_2","decision":"reject","reason":"sold out"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "waits", "cancel", "int_3").want(t, exitNotFound, "", "no open wait int_3")
	run(t, environ, "", "waits", "continue", "int_1", "--data", "blue").want(t, exitUsage, "", "--data must be JSON")
	if got := run(t, environ, "", "__complete", "waits", "continue", ""); !strings.HasPrefix(got.out, "int_1\twaits for the event paid") {
		t.Errorf("completion = %q, want the waits", got.out)
	}
}

func TestEventIsSent(t *testing.T) {
	t.Parallel()
	var sent string
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"POST /v1/events": receive(&sent, `{"id":"pay-77","source":"/shop","duplicate":false}`),
	})
	run(t, environ, "", "event", "send", "paid", "--id", "pay-77", "--source", "/shop", "--data", `{"n":1}`).want(t, 0, "pay-77 is sent.\n", "")
	if want := `{"specversion":"1.0","id":"pay-77","source":"/shop","type":"paid","data":{"n":1}}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	file := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(file, []byte(`[1]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for stdin, data := range map[string]string{"": "@" + file, `[1]`: "-"} {
		if got := run(t, environ, stdin, "event", "send", "paid", "--data", data); got.code != 0 || !strings.HasSuffix(sent, `"source":"/perdure/cli","type":"paid","data":[1]}`) {
			t.Errorf("--data %s: exit %d, sent %s, want the data", data, got.code, sent)
		}
	}
	run(t, environ, "", "event", "send", "paid", "--data", "@missing.json").want(t, exitUsage, "", "missing.json")
	again := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"POST /v1/events": respondWith(`{"id":"pay-77","source":"/shop","duplicate":true}`),
	})
	run(t, again, "", "event", "send", "paid", "--id", "pay-77").want(t, 0, "pay-77 was sent before.\n", "")
}

// TestRunThatWaitsAsksNobody: a run that waits for a time or an event is not shown as a question.
func TestRunThatWaitsAsksNobody(t *testing.T) {
	t.Parallel()
	const waiting = `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"interrupt","interrupts":[` +
		`{"id":"int_1","reason":"perdure:timer","message":"Waits.","expiresAt":"2026-03-01T08:00:00Z","metadata":{"perdure.wait":%s}}]}}`
	until := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05 MST")
	for metadata, want := range map[string]string{
		`{"kind":"timer"}`:                "… int_1 waits until " + until + "\n",
		`{"kind":"event","event":"paid"}`: "… int_1 waits for the event paid, at most until " + until + "\n",
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(begun, fmt.Sprintf(waiting, metadata))})
		got := run(t, environ, "", "run", "demo", "hi", "--thread", "t1")
		if got.code != exitWaits || !strings.Contains(got.errOut, want) || !strings.Contains(got.errOut, "perdure tail t1") || strings.Contains(got.errOut, "perdure approve") {
			t.Errorf("exit %d, %q, want %d, %q, and how to follow the run", got.code, got.errOut, exitWaits, want)
		}
	}
}
