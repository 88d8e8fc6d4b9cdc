package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agents"
)

// finished is the result of a command line.
type finished struct {
	out, errOut string
	code        int
}

// run runs a command line as main does.
func run(t *testing.T, environ []string, stdin string, args ...string) finished {
	t.Helper()
	var out, errOut bytes.Buffer
	root := &cobra.Command{Use: "perdure"}
	root.AddCommand(Commands(environ)...)
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errOut)
	code := Execute(t.Context(), root)
	return finished{out.String(), errOut.String(), code}
}

// serve answers the given routes, each a method and a path. Any other request fails the test.
func serve(t *testing.T, routes map[string]func(http.ResponseWriter, *http.Request)) (environ []string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := routes[r.Method+" "+r.URL.RequestURI()]
		if answer == nil {
			t.Errorf("request = %s %s, want none of that kind", r.Method, r.URL.RequestURI())
			w.WriteHeader(http.StatusTeapot)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return []string{"PERDURE_URL=" + s.URL}
}

// respondWith answers with JSON.
func respondWith(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// streamEvents answers with a stream of events.
func streamEvents(events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, e := range events {
			fmt.Fprintf(w, "id: c%d\ndata: %s\n\n", i, e)
		}
	}
}

// refusal answers with a problem.
func refusal(status int, code string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"so it is"}`, status, code)
	}
}

// want checks the exit code and both outputs.
func (c finished) want(t *testing.T, code int, out, errOut string) {
	t.Helper()
	if c.code != code || c.out != out || !strings.Contains(c.errOut, errOut) {
		t.Errorf("exit %d, %q, %q, want %d, %q, %q", c.code, c.out, c.errOut, code, out, errOut)
	}
}

const (
	begun = `{"type":"RUN_STARTED","threadId":"t1","runId":"r1","protocolVersion":"1.0"}`
	ended = `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1"}`
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		last     string
		wantCode int
	}{
		"success":   {ended, 0},
		"error":     {`{"type":"RUN_ERROR","message":"no","code":"limit_turns"}`, 1},
		"interrupt": {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"int_1","reason":"tool_call"}]}}`, 3},
		"client":    {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success","pendingToolCallIds":["x"]}}`, 3},
		"cancelled": {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"cancelled"}}`, 4},
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(begun, tt.last)})
		if got := run(t, environ, "", "run", "demo", "hi"); got.code != tt.wantCode {
			t.Errorf("%s: exit %d, want %d: %s", name, got.code, tt.wantCode, got.errOut)
		}
	}
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/threads/t1/events?follow=false&protocolVersion=1.0": streamEvents(begun,
			`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","metadata":{"perdure.error":{"code":"limit_turns","message":"too many"}}}`),
		"GET /v1/threads/t1/events?follow=false": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	})
	run(t, environ, "", "tail", "t1", "--no-follow").want(t, 1, "run r1 of thread t1\nthe run failed: limit_turns: too many\n", "")
	for code, want := range map[int]int{400: 2, 401: 8, 403: 8, 404: 6, 409: 7, 410: 7, 412: 7, 422: 2, 429: 7, 418: 1} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"GET /v1/threads/t1": refusal(code, "x")})
		run(t, environ, "", "threads", "show", "t1").want(t, want, "", "perdure: x: so it is\n")
	}
	for _, args := range [][]string{{"run"}, {"frob"}, {"threads", "show"}, {"run", "a", "b", "--frob"}, {"run", "a", "b", "--on-busy", "x"}, {"run", "a", "b", "--output", "x"}, {"run", "a", "b", "--output", "json", "--json"}, {"run", "a", "b", "--state", "{"}, {"threads", "--url", "x"}, {"approve", "a", "b", "--args", "{}"}, {"approve", "a", "--args", "[]"}, {"schedules", "create"}} {
		if got := run(t, nil, "", args...); got.code != exitUsage || got.out != "" {
			t.Errorf("%q: exit %d, %q, want %d", args, got.code, got.out, exitUsage)
		}
	}
	run(t, nil, "", "new", "page", "x").want(t, exitUsage, "", "unknown kind \"page\": the kinds are agent, tool and chat\nTry: perdure new --help\n")
	run(t, nil, "", "new").want(t, exitUsage, "", "name what to create: agent, tool or chat\n")
	run(t, nil, "", "threads", "--url", "http://127.0.0.1:1").want(t, exitUnreachable, "", "cannot be reached")
}

// TestOutputJSON: with --output json, standard output has the result of the run and nothing else, and the exit code tells
// whether there is one.
func TestOutputJSON(t *testing.T) {
	t.Parallel()
	answer := []string{begun, `{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"{\"n\":1}"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m1"}`}
	for name, tt := range map[string]struct {
		last, wantOut string
		wantCode      int
		wantErr       string
	}{
		"result":    {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","result":{"n":1}}`, "{\n  \"n\": 1\n}\n", 0, ""},
		"null":      {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","metadata":{"perdure.nullResult":true}}`, "null\n", 0, ""},
		"none":      {ended, "", 1, "the run has no result: give the agent demo an output"},
		"error":     {`{"type":"RUN_ERROR","message":"no","code":"invalid_output"}`, "", 1, "the run failed: invalid_output: no"},
		"interrupt": {`{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"int_1","reason":"tool_call"}]}}`, "", 3, "int_1"},
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(append(answer, tt.last)...)})
		got := run(t, environ, "", "run", "demo", "hi", "--output", "json")
		if got.code != tt.wantCode || got.out != tt.wantOut || !strings.Contains(got.errOut, tt.wantErr) {
			t.Errorf("%s: exit %d, %q, %q, want %d, %q, %q", name, got.code, got.out, got.errOut, tt.wantCode, tt.wantOut, tt.wantErr)
		}
	}
}

// TestIncompleteAnswerIsShown: a run shows why its answer is incomplete, and the answer is the same.
func TestIncompleteAnswerIsShown(t *testing.T) {
	t.Parallel()
	events := []string{begun, `{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Once"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`, `{"type":"CUSTOM","name":"perdure.answerIncomplete","value":{"messageId":"m1","reason":"length"}}`, ended}
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(events...)})
	got := run(t, environ, "", "run", "demo", "hi")
	if got.code != 0 || got.out != "Once\n" || !strings.Contains(got.errOut, "! the answer is incomplete: length\n") {
		t.Errorf("exit %d, %q, %q, want 0, the answer, and why it is incomplete", got.code, got.out, got.errOut)
	}
}

// TestQuietRunShowsFailure: with --quiet, standard error has the failure of a run, and nothing else.
func TestQuietRunShowsFailure(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{
		"live":    `{"type":"RUN_ERROR","message":"no","code":"invalid_output"}`,
		"earlier": `{"type":"RUN_FINISHED","threadId":"t1","runId":"r1","metadata":{"perdure.error":{"code":"invalid_output","message":"no"}}}`,
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){"POST /v1/agents/demo/runs": streamEvents(begun, last)})
		for _, output := range []string{"text", "json"} {
			got := run(t, environ, "", "run", "demo", "hi", "-q", "--output", output)
			if want := "the run failed: invalid_output: no\n"; got.code != 1 || got.errOut != want {
				t.Errorf("%s, %s: exit %d, %q, want 1, %q", name, output, got.code, got.errOut, want)
			}
		}
	}
}

// TestAnswerOmitsFailedAttempts: the answer on a pipe contains the output of the successful attempt
// and not that of a failed one.
func TestAnswerOmitsFailedAttempts(t *testing.T) {
	t.Parallel()
	text := func(kind, more string) string {
		return fmt.Sprintf(`{"type":"TEXT_MESSAGE_%s","messageId":"m1"%s}`, kind, more)
	}
	var input struct {
		ThreadID, RunID string
		Messages        []struct{ ID, Content string }
		ForwardedProps  struct {
			Perdure struct{ History, OnBusy string }
		}
	}
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"POST /v1/agents/demo/runs": func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
				t.Error(err)
			}
			streamEvents(begun, `{"type":"STEP_STARTED","stepName":"model"}`,
				`{"type":"REASONING_MESSAGE_START","messageId":"r1","role":"reasoning"}`, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"r1","delta":"hm"}`, `{"type":"REASONING_MESSAGE_END","messageId":"r1"}`,
				text("START", ""), text("CONTENT", `,"delta":"gone"`), text("END", ""),
				`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"hi"}]}`,
				text("START", ""), text("CONTENT", `,"delta":"here\u001b[31m"`), text("END", ""),
				`{"type":"TOOL_CALL_START","toolCallId":"k1","toolCallName":"pay"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"k1","delta":"{\"n\":"}`,
				`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"assistant","content":"here"}]}`, `{"type":"TOOL_CALL_END","toolCallId":"k1"}`,
				`{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"helper"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m2","subagentRunId":"s","role":"assistant"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","subagentRunId":"s","delta":"one\ntw"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","subagentRunId":"s","delta":"o"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m2","subagentRunId":"s"}`,
				`{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`, ended)(w, r)
		},
	})
	got := run(t, environ, "hi\nthere", "run", "demo", "-", "--thread", "t1", "--on-busy", "enqueue")
	got.want(t, 0, "here\x1b[31m\n", "")
	want := "run r1 of thread t1\n· model\nhm\n↺ the text above is retracted: its attempt failed, and a new attempt begins\n  ▸ helper\n    one\n    two\n  ◂ helper\n"
	if got.errOut != want {
		t.Errorf("stderr is\n%s\nwant\n%s", got.errOut, want)
	}
	if p := input.ForwardedProps.Perdure; input.ThreadID != "t1" || len(input.Messages) != 1 || input.Messages[0].Content != "hi\nthere" || input.Messages[0].ID != messageID("t1", input.RunID) || p.History != "append" || p.OnBusy != "enqueue" {
		t.Errorf("input = %+v, want the new message on t1, appended", input)
	}
}

// TestMessagesHaveIDsOfTheirThread: a fork has the messages of its parent. A message in a run of
// the fork is new, also if the run has the ID of a run of the parent.
func TestMessagesHaveIDsOfTheirThread(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, thread := range []string{"t1", "t1", "fork"} {
		input, err := runOptions{thread: thread, run: "r1", onBusy: "reject"}.input(new("hi"))
		if err != nil {
			t.Fatal(err)
		}
		said[input.Messages[0].ID] = true
	}
	if len(said) != 2 {
		t.Errorf("message IDs = %v, want 2: one for each thread", said)
	}
}

func TestEventsAsJSON(t *testing.T) {
	t.Parallel()
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/threads/t1/runs/r1/events?protocolVersion=1.0": streamEvents(begun, `{"type":"LATER","x":1}`, ended),
	})
	want := `{"cursor":"c0","event":` + begun + "}\n" + `{"cursor":"c1","event":{"type":"LATER","x":1}}` + "\n" + `{"cursor":"c2","event":` + ended + "}\n"
	run(t, environ, "", "tail", "t1", "--run", "r1", "--json").want(t, 0, want, "")
}

func TestTailShowsHistory(t *testing.T) {
	t.Parallel()
	list := `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":"hi"},
		{"id":"2","role":"assistant","content":"ho","toolCalls":[{"id":"k","type":"function","function":{"name":"add","arguments":"{}"}}]},{"id":"3","role":"tool","toolCallId":"k","content":"7"}]}`
	list = strings.Join(strings.Fields(list), " ")
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/threads/t1/events?follow=false&protocolVersion=1.0": streamEvents(begun, list, list, ended),
		"GET /v1/threads/t1/events?follow=false":                     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	})
	run(t, environ, "", "tail", "t1", "--no-follow").want(t, 0, "run r1 of thread t1\n> hi\nho\n→ add {}\n← 7\n", "")
}

// TestTailShowsNothingTwice: a snapshot at the end of a run repeats the calls and the earlier
// messages. The command does not print them again.
func TestTailShowsNothingTwice(t *testing.T) {
	t.Parallel()
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/threads/t1/runs/r1/events?protocolVersion=1.0": streamEvents(begun,
			`{"type":"TOOL_CALL_START","toolCallId":"k","toolCallName":"add","parentMessageId":"2"}`, `{"type":"TOOL_CALL_END","toolCallId":"k"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"3","toolCallId":"k","content":"7","role":"tool"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":"hi"},`+
				`{"id":"2","role":"assistant","toolCalls":[{"id":"k","type":"function","function":{"name":"add","arguments":"{}"}}]},`+
				`{"id":"3","role":"tool","toolCallId":"k","content":"7"},{"id":"4","role":"user","content":"and now?"}]}`, ended),
	})
	run(t, environ, "", "tail", "t1", "--run", "r1").want(t, 0, "run r1 of thread t1\n→ add \n← add 7\n> and now?\n", "")
}

const pending = `{"items":[{"id":"int_1","threadId":"t1","agent":"a","toolName":"pay","args":{"n":1},"requestedAt":"2026-01-01T00:00:00Z","quorum":2,"approvers":["role:x"]},
	{"id":"int_2","threadId":"t2","agent":"a","toolName":"pay","requestedAt":"2026-01-01T00:00:00Z","reason":"tool_call"},
	{"id":"int_4","threadId":"t4","agent":"a","toolName":"ask_user","reason":"input_required",
		"message":"Which color?","responseSchema":{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"}}}},
	{"id":"int_5","threadId":"t5","agent":"shop","step":"check","toolName":"approve","args":{},"message":"Ship it?","reason":"tool_call","requestedAt":"2026-01-01T00:00:00Z","quorum":2,
		"decisions":[{"decision":"approve","argsDigest":"d"},{"decision":"edit","argsDigest":"e","args":{"n":2}}],
		"tallies":[{"argsDigest":"d","decision":"approve","votes":1,"missing":1},{"argsDigest":"e","decision":"edit","votes":1,"missing":1}]},
	{"id":"int_6","threadId":"t6","agent":"shop","toolName":"approve","args":{"limit":"tokens"},"message":"Go on?","reason":"tool_call","requestedAt":"2026-01-01T00:00:00Z"}],"eventsCursor":"e1"}`

func TestDecisions(t *testing.T) {
	t.Parallel()
	var sent string
	batch := func(answer string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			respondWith(answer)(w, r)
		}
	}
	routes := map[string]func(http.ResponseWriter, *http.Request){"GET /v1/approvals?limit=500": respondWith(pending)}
	environ := serve(t, routes)

	routes["POST /v1/approvals/batch"] = batch(`{"items":[{"id":"int_1","status":200,"decision":"approve","missing":1},{"id":"int_2","status":409,"code":"decided","detail":"no","recorded":{"decision":"reject","by":"bob"}}]}`)
	run(t, environ, "", "approve", "int_1", "int_2", "--remember").want(t, exitConflict, "int_1: approve is counted, votes still needed for the same: 1\n", "int_2: decided: no (recorded: reject by bob)")
	if want := `{"decisions":[{"threadId":"t1","id":"int_1","decision":"approve","remember":"arguments"},{"threadId":"t2","id":"int_2","decision":"approve","remember":"arguments"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	routes["POST /v1/approvals/batch"] = batch(`{"items":[{"id":"int_1","status":200,"decision":"edit"}]}`)
	run(t, environ, "", "approve", "int_1", "--args", `{"n":2}`).want(t, 0, "int_1: edit\n", "")
	if want := `{"decisions":[{"threadId":"t1","id":"int_1","decision":"edit","args":{"n":2}}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "reject", "int_1", "--thread", "t9", "--reason", "dear", "--json").want(t, 0, "{\n  \"results\": [\n    {\n      \"threadId\": \"\",\n      \"id\": \"int_1\",\n      \"status\": 200,\n      \"decision\": \"edit\"\n    }\n  ]\n}\n", "")
	if want := `{"decisions":[{"threadId":"t9","id":"int_1","decision":"reject","reason":"dear"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "seven", "answer", "int_2", "-").want(t, 0, "int_1: edit\n", "")
	if want := `{"decisions":[{"threadId":"t2","id":"int_2","decision":"answer","content":"seven"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "answer", "int_4", "blue").want(t, 0, "int_1: edit\n", "")
	if want := `{"decisions":[{"threadId":"t4","id":"int_4","decision":"answer","content":{"answer":"blue"}}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	routes["GET /v1/approvals?limit=500&thread=t9"] = respondWith(`{"items":[]}`)
	run(t, environ, "", "answer", "int_9", "gone", "--thread", "t9").want(t, 0, "int_1: edit\n", "")
	if want := `{"decisions":[{"threadId":"t9","id":"int_9","decision":"answer","content":"gone"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "approve", "int_1", "--remember=tool").want(t, 0, "int_1: edit\n", "")
	if want := `{"decisions":[{"threadId":"t1","id":"int_1","decision":"approve","remember":"tool"}]}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	run(t, environ, "", "approve", "int_1", "--remember=thread").want(t, exitUsage, "", "--remember must be arguments or tool")
	routes["POST /v1/approvals/batch"] = batch(`{"items":[{"id":"int_1","status":200,"decision":"approve","repeated":true,"recorded":{"decision":"approve","by":"bob"}},
		{"id":"int_2","status":200,"decision":"edit","missing":1,"tallies":[{"decision":"approve","votes":2,"missing":1},{"decision":"edit","votes":2,"missing":1}]}]}`)
	run(t, environ, "", "approve", "int_1", "int_2").want(t, 0,
		"int_1: approve, as before (recorded: approve by bob)\nint_2: edit is counted, votes still needed for the same: 1; approve has 2 of 3 votes\n", "")
	run(t, environ, "", "approve", "int_3").want(t, exitNotFound, "", "no open approval int_3")
}

func TestLists(t *testing.T) {
	t.Parallel()
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/approvals?agent=a&limit=2": respondWith(pending),
		"GET /v1/approvals?status=decided": respondWith(`{"items":[
			{"id":"int_1","agent":"a","toolName":"pay","args":{"n":1},"decisions":[{"decision":"edit","by":"ada","args":{"n":2}}]},
			{"id":"int_2","agent":"a","toolName":"pay","args":{"n":1},"decisions":[{"decision":"reject","reason":"too dear"}]}]}`),
		"GET /v1/threads?limit=1&owner=ann&q=refund&status=waiting": respondWith(`{"items":[{"threadId":"t1","title":"Refund 42","agent":"a","status":"waiting","runId":"r1","later":1}],"nextCursor":"n"}`),
		"GET /v1/threads/t1":                    respondWith(`{"threadId":"t1","status":"running","runId":"r 1","runs":3}`),
		"GET /v1/threads/t2":                    respondWith(`{"threadId":"t2","status":"waiting","runId":"r 2","runs":1}`),
		"POST /v1/threads/t2/runs/r%202/cancel": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"GET /v1/threads/t1/state":              respondWith(`{"state":{"a":[1]}}`),
		"GET /v1/threads/t1/messages":           respondWith(`{"items":[{"id":"1","role":"user","content":"hi"}]}`),
		"GET /v1/threads/t1/runs":               respondWith(`{"items":[{"runId":"r1","agent":"a","startedAt":"2026-01-01T00:00:00Z","outcome":"error","code":"x"}]}`),
		"GET /v1/threads/t1/shares":             respondWith(`{"owner":"ann","shares":[{"subject":"bob","access":"run"}]}`),
		"PUT /v1/threads/t1/title": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write([]byte(strings.Replace(string(body), "{", `{"threadId":"t1",`, 1)))
		},
		"PUT /v1/threads/t1/shares": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write([]byte(strings.Replace(string(body), "{", `{"owner":"ann",`, 1)))
		},
		"DELETE /v1/threads/t1":                 func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"POST /v1/threads/t1/runs/r%201/cancel": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"POST /v1/threads/t1/messages":          respondWith(`{"runId":"r1","cursor":"c"}`),
		"GET /v1/agents":                        respondWith(`{"items":[{"name":"a","model":"m","scope":"tenant","revision":"tenant-0123456789abcdef"}]}`),
		"POST /v1/schedules": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if want := `{"id":"s1","agent":"a","cron":["@daily"],"intervals":[{"every":"1h"}],"input":{"messages":[{"content":"hi","role":"user"}]}}`; string(body) != want {
				t.Errorf("sent %s, want %s", body, want)
			}
			respondWith(`{"id":"s1"}`)(w, r)
		},
		"GET /v1/schedules/s1":                   respondWith(`{"id":"s1","agent":"a","intervals":[{"every":"1h"}],"timeZone":"UTC","next":["2030-01-01T00:00:00Z"],"recent":[{"threadId":"t7","runId":"r7","outcome":"success"}]}`),
		"GET /v1/threads":                        respondWith(`{"items":[{"threadId":"t1","agent":"a","status":"idle"}]}`),
		"GET /v1/threads?minCost=0.5&stuck=true": respondWith(`{"items":[{"threadId":"t1","agent":"a","status":"running","runId":"r1","stuck":{"reason":"no worker","taskQueue":"q","since":"0001-01-01T00:00:00Z"}}]}`),
		"GET /v1/schedules":                      respondWith(`{"items":[{"id":"s1","agent":"a","cron":["@daily"],"timeZone":"UTC","paused":true}]}`),
		"GET /v1/audit?limit=1&order=newest":     respondWith(`{"items":[{"number":7,"time":"2026-01-01T00:00:00Z","action":"run.start","outcome":"denied","code":"forbidden","rule":"owner","thread":"t1"}],"nextCursor":"7"}`),
		"POST /v1/schedules/s1/trigger":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	})
	if got := run(t, environ, "", "approvals", "--agent", "a", "--limit", "2"); !strings.Contains(got.out, `pay {"n":1}`) || !strings.Contains(got.out, "role:x (0 of 2)") {
		t.Errorf("approvals = %q, want the call and its votes", got.out)
	} else {
		for _, want := range []string{"Which color? [answer (string)]", "shop, step check   Ship it?  ", "- (approve: 1 of 2, edit: 1 of 2 for {\"n\":2})", `Go on? {"limit":"tokens"}`} {
			if !strings.Contains(got.out, want) {
				t.Errorf("approvals = %q, want text with %q", got.out, want)
			}
		}
	}
	if got := run(t, environ, "", "approvals", "--status", "decided"); !strings.Contains(got.out, `edit {"n":2}       ada`) || !strings.Contains(got.out, "reject: too dear   -") {
		t.Errorf("approvals --status decided = %q, want both decisions", got.out)
	}
	run(t, environ, "", "threads", "--limit", "1", "--status", "waiting", "--search", "refund", "--owner", "ann").want(t, 0, "THREAD   AGENT   STATUS    UPDATED   RUN   TITLE\nt1       a       waiting   -         r1    Refund 42\n", "--cursor n")
	run(t, environ, "", "threads", "--stuck", "--min-cost", "0.5").want(t, 0, "THREAD   AGENT   RUN   SINCE   REASON\nt1       a       r1    -       no worker\n", "")
	run(t, environ, "", "threads", "title", "t1", "Refund 42").want(t, 0, "thread   t1\ntitle    Refund 42\n", "")
	if got := run(t, environ, "", "threads", "list", "--limit", "1", "--status", "waiting", "--search", "refund", "--owner", "ann", "--json"); !strings.Contains(got.out, `"later": 1`) {
		t.Errorf("threads --json = %q, want later members", got.out)
	}
	run(t, environ, "", "audit", "--limit", "1").want(t, 0, "NUMBER   TIME                   SUBJECT   ACTION      OUTCOME                  TARGET\n7        2026-01-01T00:00:00Z   -         run.start   denied forbidden owner   thread t1\n", "--cursor 7")
	run(t, environ, "", "threads", "state", "t1").want(t, 0, "{\n  \"a\": [\n    1\n  ]\n}\n", "")
	run(t, environ, "", "threads", "messages", "t1").want(t, 0, "> hi\n", "")
	if got := run(t, environ, "", "threads", "runs", "t1"); !strings.Contains(got.out, "error x") {
		t.Errorf("runs = %q, want the error of the run", got.out)
	}
	run(t, environ, "", "threads", "share", "t1").want(t, 0, "WHO   ACCESS\nann   owner\nbob   run\n", "")
	run(t, environ, "", "threads", "share", "t1", "a=b=read", "role:finance=decide", "everyone=read").want(t, 0, "WHO            ACCESS\nann            owner\na=b            read\nrole:finance   decide\neveryone       read\n", "")
	run(t, environ, "", "threads", "share", "t1", "--private").want(t, 0, "WHO   ACCESS\nann   owner\n", "")
	run(t, environ, "", "threads", "share", "t1", "globex/gil=read").want(t, 0, "WHO          ACCESS\nann          owner\nglobex/gil   read\n", "The part before the slash is no tenant")
	run(t, environ, "", "threads", "share", "t1", "bob").want(t, exitUsage, "", "is not a share such as bob=run")
	run(t, environ, "", "threads", "delete", "t1", "--json").want(t, 0, "{}\n", "")
	run(t, environ, "", "cancel", "t1").want(t, 0, "r 1 is being cancelled.\n", "")
	run(t, environ, "", "cancel", "t2").want(t, 0, "r 2 waits for decisions: answer or reject them.\n", "")
	run(t, environ, "", "steer", "t1", "more").want(t, 0, "r1 has received the message.\n", "")
	run(t, environ, "", "agents").want(t, 0, "AGENT   SCOPE    MODEL   REVISION              DESCRIPTION\na       tenant   m       tenant-0123456789ab   -\n", "")
	run(t, environ, "", "schedules", "create", "a", "hi", "--id", "s1", "--cron", "@daily", "--every", "1h").want(t, 0, "s1 is created.\n", "")
	run(t, environ, "", "schedules").want(t, 0, "SCHEDULE   AGENT   WHEN         PAUSED   THREAD   NOTE\ns1         a       @daily UTC   yes      -        -\n", "")
	run(t, environ, "", "schedules", "trigger", "s1").want(t, 0, "s1 starts a run.\n", "")
	if got := run(t, environ, "", "schedules", "show", "s1"); !strings.Contains(got.out, "every 1h UTC\n") || !strings.Contains(got.out, "t7 r7 success") {
		t.Errorf("show = %q, want the times and the last run", got.out)
	}
	if got := run(t, environ, "", "__complete", "run", ""); !strings.HasPrefix(got.out, "a\n") {
		t.Errorf("completion = %q, want the agent", got.out)
	}
	if got := run(t, environ, "", "__complete", "run", "a", "hi", "--thread", ""); !strings.HasPrefix(got.out, "t1\t") {
		t.Errorf("completion of a flag after the arguments = %q, want the thread", got.out)
	}
	if got := run(t, environ, "", "__complete", "schedules", "trigger", "s1", "--overlap", ""); !strings.HasPrefix(got.out, "skip\nbuffer_one\n") {
		t.Errorf("completion of an overlap = %q, want skip and buffer_one", got.out)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := file("good.yaml", "name: a\nmodel: openai/m\n"), file("bad.yaml", "name: a\nmodell: p/m\n")
	run(t, nil, "", "agents", "validate", good).want(t, 0, "1 agents, 0 tools, 0 MCP servers and 0 scripts are valid.\n", "")
	run(t, nil, "", "agents", "validate", good, bad).want(t, exitUsage, "", bad+`:2: unknown key "modell" (did you mean "model"?)`)
	other := filepath.Join(t.TempDir(), "names.yaml")
	for file, text := range map[string]string{
		other: "name: n\nmodel: openai/m\ntools: [calculat, \"agent:next\", reserve]\n",
		filepath.Join(filepath.Dir(other), "next.yaml"): "name: next\nmodel: openai/m\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, nil, "", "agents", "validate", other).want(t, exitUsage, "",
		other+`:3: /tools/0: unknown tool "calculat" (did you mean "calculate"?)`+"\n"+other+`:3: /tools/2: unknown tool "reserve"`)
	run(t, nil, "", "agents", "validate", other, "--known", "reserve,calc*").want(t, 0, "1 agents, 0 tools, 0 MCP servers and 0 scripts are valid.\n", "")
	program := filepath.Join(t.TempDir(), "program.yaml")
	if err := os.WriteFile(program, []byte("name: p\nworkflow: invoice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "", "agents", "validate", program).want(t, exitUsage, "", program+`:2: /workflow: unknown program "invoice"`)
	run(t, nil, "", "agents", "validate", program, "--known", "invoice").want(t, 0, "1 agents, 0 tools, 0 MCP servers and 0 scripts are valid.\n", "")
	if got := run(t, nil, "", "agents", "validate", other, "--json"); got.code != exitUsage || !strings.Contains(got.out, `"pointer": "/tools/0"`) {
		t.Errorf("validate --json of unknown names = %+v, want the exit code %d and the pointer", got, exitUsage)
	}
	if got := run(t, nil, "", "agents", "validate", dir, "--json"); got.code != exitUsage || !strings.Contains(got.out, `"line": 2`) || got.errOut != "" {
		t.Errorf("validate --json of a mistake = %+v, want the exit code %d and the line", got, exitUsage)
	}
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"PUT /v1/agents/a": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent, err := agents.Parse("sent", body)
			if err != nil || sent.Name != "a" || sent.Model != "openai/m" {
				t.Errorf("body of put = %q, %v, want the definition as JSON", body, err)
			}
			if match := r.Header.Get("If-Match"); match != "" && match != `"r0"` || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("headers of put = %v, want the token and the revision", r.Header)
			}
			respondWith(`{"name":"a","revision":"r1"}`)(w, r)
		},
		"PUT /v1/agents/a?scope=tenant": respondWith(`{"name":"a","revision":"tenant-r1"}`),
		"PUT /v1/agents/b":              respondWith(`{"name":"b","revision":"r2","warnings":["unknown tool"]}`),
	})
	environ = append(environ, "PERDURE_TOKEN=secret")
	run(t, environ, "", "agents", "put", good, "--if-match", "r0", "--token-file", file("token", "secret\n")).want(t, 0, "a is now revision r1.\n", "")
	run(t, environ, "", "agents", "put", good, "--scope", "tenant").want(t, 0, "a is now revision tenant-r1.\n", "")
	run(t, environ, "", "agents", "put", bad).want(t, exitUsage, "", "unknown key")
	many := "name: a\nmodel: openai/m\n---\nkind: script\nname: s\nturns: [{steps: [{say: Hi}]}]\n---\nname: b\nmodel: scripted/s\n"
	run(t, environ, many, "agents", "put", "-").want(t, 0, "a is now revision r1.\nb is now revision r2.\n",
		"1 tools, MCP servers and scripts are not published: put them into the folder of your workers.\nwarning: unknown tool\n")
	run(t, environ, many, "agents", "put", "-", "--if-match", "r0").want(t, exitUsage, "", "--if-match is for one agent")
	run(t, environ, many+"---\nname: c\nmodell: m\n", "agents", "put", good, "-").want(t, exitUsage, "", `unknown key "modell"`)
	run(t, environ, many, "agents", "put", good, "-").want(t, exitUsage, "", "agent a is also defined in "+good)
}

// TestAgentsOfAScope: every command that reads an agent finds the one of the scope, and by default
// leaves the choice to the server.
func TestAgentsOfAScope(t *testing.T) {
	t.Parallel()
	handlers := map[string]func(http.ResponseWriter, *http.Request){}
	for query, name := range map[string]string{"": "default", "scope=platform": "platform", "scope=tenant": "tenant"} {
		add := func(path string, handler func(http.ResponseWriter, *http.Request)) {
			if query != "" {
				path += "?" + query
			}
			handlers["GET /v1/agents/desk"+path] = handler
		}
		text := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name + " text\n")) }
		add("", respondWith(`{"name":"desk","revision":"`+name+`-r"}`))
		add("/revisions", respondWith(`{"items":[{"revision":"`+name+`-r","publishedAt":"2026-01-01T00:00:00Z"}]}`))
		add("/revisions/"+name+"-r", text)
		add("/revisions/"+name+"-r/diff", text)
	}
	environ := serve(t, handlers)
	for scope, flags := range map[string][]string{"default": nil, "platform": {"--scope", "platform"}, "tenant": {"--scope", "tenant"}} {
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"show", "desk"}, scope + "-r"}, {[]string{"show", "desk", "--revision", scope + "-r"}, scope + " text"},
			{[]string{"revisions", "desk"}, scope + "-r"}, {[]string{"diff", "desk"}, scope + " text"},
		} {
			if got := run(t, environ, "", append(append([]string{"agents"}, tt.args...), flags...)...); got.code != 0 || !strings.Contains(got.out, tt.want) {
				t.Errorf("agents %q %q: got %+v, want %q", tt.args, flags, got, tt.want)
			}
		}
	}
}
