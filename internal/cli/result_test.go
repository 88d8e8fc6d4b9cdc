package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRunShowsResult: the result of a run follows its answer, unless the answer is the result. With -q it
// takes the place of the answer. A run without a result shows its answer.
func TestRunShowsResult(t *testing.T) {
	t.Parallel()
	say := func(text string) []string {
		return []string{`{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"` + text + `"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m1"}`}
	}
	finished := `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","result":{"n":1,"s":"<x>"}}`
	const result = "{\n  \"n\": 1,\n  \"s\": \"<x>\"\n}\n"
	for name, tt := range map[string]struct {
		text, last      string
		want, wantQuiet string
	}{
		"another answer": {"Hm.", finished, "Hm.\n" + result, result},
		"the answer":     {`{\"n\": 1, \"s\": \"<x>\"}`, finished, `{"n": 1, "s": "<x>"}` + "\n", result},
		"no result":      {"Hm.", ended, "Hm.\n", "Hm.\n"},
	} {
		events := append([]string{begun}, append(say(tt.text), tt.last)...)
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(events...)})
		if got := run(t, environ, "", "run", "demo", "hi"); got.code != 0 || got.out != tt.want {
			t.Errorf("%s: exit %d, %q, want %q", name, got.code, got.out, tt.want)
		}
		if got := run(t, environ, "", "run", "demo", "hi", "-q"); got.code != 0 || got.out != tt.wantQuiet || got.errOut != "" {
			t.Errorf("%s with -q: exit %d, %q, %q, want %q", name, got.code, got.out, got.errOut, tt.wantQuiet)
		}
	}
}

// TestRunShowsWait: a run that ends waiting says for what and until when, also with -q: on standard error.
func TestRunShowsWait(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05 MST")
	for wait, want := range map[string]string{
		`{"kind":"timer"}`: "… int_1 waits until " + at + "\n",
		`{"kind":"event","event":"paid","match":{"id":"A-1"}}`: `… int_1 waits for the event paid id="A-1", at most until ` + at + "\n",
	} {
		last := `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"interrupt","interrupts":[
			{"id":"int_1","reason":"perdure:event","expiresAt":"2026-03-01T08:00:00Z","metadata":{"perdure.wait":` + wait + `}}]}}`
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(begun, strings.Join(strings.Fields(last), " "))})
		run(t, environ, "", "run", "demo", "hi", "-q").want(t, exitWaits, "", want)
		if got := run(t, environ, "", "run", "demo", "hi"); got.code != exitWaits || strings.Count(got.errOut, want) != 1 {
			t.Errorf("%s: exit %d, %q, want %q once", wait, got.code, got.errOut, want)
		}
	}
}

// TestCancelNamesWait: the command tells that a thread waits for a time or an event, and how to end the
// wait. If people decide, too, it names the decisions.
func TestCancelNamesWait(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05 MST")
	const timer = `{"id":"int_1","reason":"perdure:timer","expiresAt":"2026-03-01T08:00:00Z","metadata":{"perdure.wait":{"kind":"timer"}}}`
	for waiting, want := range map[string]string{
		timer: "r1 waits until " + at + ". To end the wait: perdure waits cancel int_1\n",
		timer + `,{"id":"int_2","reason":"tool_call"}`: "r1 waits for decisions: answer or reject them.\n",
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
			"GET /v1/threads/t1":                 respondWith(`{"threadId":"t1","runId":"r1","status":"waiting","waiting":{"interrupts":[` + waiting + `]}}`),
			"POST /v1/threads/t1/runs/r1/cancel": respondWith(`{}`),
		})
		run(t, environ, "", "cancel", "t1").want(t, 0, want, "")
	}
}
