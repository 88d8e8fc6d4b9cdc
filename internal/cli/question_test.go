package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// TestQuestions: the command asks the user again until the server accepts the decision.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"huh\ny\n":                       `approve`,
		"s\n":                            `approve,"remember":"arguments"`,
		"t\n":                            `approve,"remember":"tool"`,
		"n\ntoo dear\n":                  `reject,"reason":"too dear"`,
		"a\nseven\n":                     `answer,"content":"seven"`,
		"e\nno JSON\ne\n{\"n\":2}\n":     `edit,"args":{"n":2}`,
		"e\n{\"bad\":1}\ne\n{\"n\":2}\n": `edit,"args":{"n":2}`,
		"l\n":                            "",
		"":                               "",
	} {
		var sent string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Decisions []json.RawMessage }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Decisions) != 1 {
				t.Errorf("body = %+v, %v, want one decision", body, err)
			}
			sent = string(body.Decisions[0])
			if strings.Contains(sent, "bad") {
				fmt.Fprint(w, `{"items":[{"status":422,"code":"invalid_answer","detail":"no"}]}`)
				return
			}
			fmt.Fprint(w, `{"items":[{"status":200}]}`)
		}))
		c, err := client.New(client.Config{URL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		p := &page{w: io.Discard, column: &column{}}
		v := &viewer{transcript: newTranscript(p, p), client: c, thread: "t1", questions: newQuestions(strings.NewReader(typed), io.Discard)}
		decided, err := v.askUser(t.Context(), agui.Interrupt{ID: "int_1", Message: "May it?"})
		if err != nil || decided != (want != "") {
			t.Errorf("%q: decided = %t, %v, want %t", typed, decided, err, want != "")
		}
		if want != "" {
			name, rest, _ := strings.Cut(want, ",")
			if rest != "" {
				rest = "," + rest
			}
			want = `{"threadId":"t1","id":"int_1","decision":"` + name + `"` + rest + `}`
		}
		if sent != want {
			t.Errorf("%q: sent %s, want %s", typed, sent, want)
		}
		s.Close()
	}
}

// TestQuestionsOfTools: the question of a tool is answered according to its schema. The user cannot
// approve the call: it has already started.
func TestQuestionsOfTools(t *testing.T) {
	t.Parallel()
	const one = `{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"},"why":{"type":"string"}}}`
	const yes = `{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}`
	const two = `{"type":"object","required":["city","zip"]}`
	for _, c := range []struct{ schema, typed, want string }{
		{one, "y\na\nblue\n", `{"decision":"answer","content":{"answer":"blue"}}`},
		{one, "s\ne\na\n12\n", `{"decision":"answer","content":{"answer":"12"}}`},
		{one, "answer\n{\"answer\":\"red\",\"why\":\"so\"}\n", `{"decision":"answer","content":{"answer":"red","why":"so"}}`},
		{yes, "a\ntrue\n", `{"decision":"answer","content":{"approved":true}}`},
		{two, "a\n{\"city\":\"Ulm\",\"zip\":1}\n", `{"decision":"answer","content":{"city":"Ulm","zip":1}}`},
		{two, "a\nUlm\n", `{"decision":"answer","content":"Ulm"}`},
		{`{"type":"number"}`, "a\n7\n", `{"decision":"answer","content":7}`},
		{one, "n\nno idea\n", `{"decision":"reject","reason":"no idea"}`},
	} {
		i := agui.Interrupt{ID: "int_1", Reason: "input_required", ResponseSchema: json.RawMessage(c.schema)}
		d, err := newQuestions(strings.NewReader(c.typed), io.Discard).askDecision(t.Context(), "?", i)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(d); string(got) != strings.Replace(c.want, "{", `{"threadId":"","id":"",`, 1) {
			t.Errorf("%q to %s is %s, want %s", c.typed, c.schema, got, c.want)
		}
	}
}

// TestApproversSeeTheSubject: the approver sees the call that awaits approval, or the question of a
// step or a tool.
func TestApproversSeeTheSubject(t *testing.T) {
	t.Parallel()
	for _, q := range []struct{ tool, args, reason, want string }{
		{"refund", `{"order":7}`, "tool_call", `refund {"order":7}`},
		{"approve", `{}`, "tool_call", "Publish it?"},
		{"approve", `{"text":"News"}`, "tool_call", `Publish it? {"text":"News"}`},
		{"ask_user", `{"question":"Which?"}`, "input_required", "Publish it?"},
	} {
		v := &viewer{transcript: newTranscript(&page{}, &page{})}
		c := &call{name: q.tool}
		c.args.WriteString(q.args)
		v.calls["c"] = c
		if got := v.describe(agui.Interrupt{ToolCallID: "c", Reason: q.reason, Message: "Publish it?"}); got != q.want {
			t.Errorf("description of %+v = %q, want %q", q, got, q.want)
		}
	}
}

func TestQuestionsEndWithContext(t *testing.T) {
	t.Parallel()
	in, _ := io.Pipe() // no input ever arrives
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newQuestions(in, io.Discard).askDecision(ctx, "?", agui.Interrupt{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}

// TestControlCharactersAreReplaced: output of models and tools cannot control a terminal.
func TestControlCharactersAreReplaced(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := &page{w: &b, terminal: true, colors: true, column: &column{}}
	p.write("a\x1b[2J\u202eb\x9b\r\n", plain)
	p.writeLine("  ", dim, "%s", "c\x07\nd")
	if want := "a\uFFFD[2J\uFFFDb\uFFFD\uFFFD\n\x1b[2m  c\uFFFD\n\x1b[0m\x1b[2m  d\n\x1b[0m"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got := oneLine(" a\n\x1bb "+strings.Repeat("x", 10), 6); got != "a \uFFFDbx"+"…" && len([]rune(got)) != 6 {
		t.Errorf("oneLine = %q, want one line of 6 characters", got)
	}
}
