package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a model server or a client does, it gets a clear error or a correct run; the thread can
// be gone on with, and a run of somebody else, which goes on all the while, notices nothing.
func TestHostile(t *testing.T) {
	v := openVillain(t)
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = v.environ()
	p.keep(t)
	p.start(t)
	neighbor := p.follow(t, newInput(say("trick:neighbor")))
	neighbor.contents(t, 1)

	t.Run("models", func(t *testing.T) { hostileModels(t, p, v) })
	t.Run("clients", func(t *testing.T) { hostileClients(t, p) })

	close(v.goOn)
	neighbor.finish(t)
	if got := spokenIn(neighbor.events); strings.ReplaceAll(got, ".", "") != mark+" I am the neighbor" || neighbor.comebacks > 0 || v.called(neighbor.in.Messages[0].Content) != 1 {
		t.Errorf("the neighbor said %q, after %d comebacks", got, neighbor.comebacks)
	}
}

// spokenIn returns the last text of a stream.
func spokenIn(events []event) (text string) {
	for _, e := range events {
		switch e.Type {
		case "TEXT_MESSAGE_START":
			text = ""
		case "TEXT_MESSAGE_CONTENT":
			text += e.member("delta")
		}
	}
	return text
}

func hostileModels(t *testing.T, p *perdure, v *villain) {
	type expected struct {
		code  string // of RUN_ERROR; "" = the run succeeds
		text  string // of its answer
		calls int    // of the model
	}
	tooLarge := expected{code: "response_too_large", calls: 1}
	again := expected{text: fineAnswer, calls: 2}
	for trick, want := range map[string]expected{
		"silent": again, "silentMid": again, "endlessComments": again, "html": again, "wholeJSON": again, "garbage": again,
		"halfCall": again, "errorMid": again, "negativeIndex": again,
		"endlessText": tooLarge, "endlessLine": tooLarge, "hugeIndex": tooLarge, "manyCalls": tooLarge, "endlessArguments": tooLarge, "gzipBomb": tooLarge,
		"sameIDs": again, "badArguments": again, // the second call has their results
		"drip": {text: fineAnswer, calls: 1}, "absurdUsage": {text: fineAnswer, calls: 1}, "afterTheEnd": {text: fineAnswer, calls: 1},
		"noUTF8":   {text: mark + " \ufffd\ufffd\ufffd € \ufffd \ufffd", calls: 1},
		"controls": {text: mark + " \x00 \x1b[2J \u2028 \r\n\r\ndata: {} \ufeff \u202e", calls: 1},
		"nothing":  {calls: 1},
		"redirect": {code: "invalid_request", calls: 1},
	} {
		t.Run(trick, func(t *testing.T) {
			t.Parallel()
			in := newInput(say("trick:" + trick))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			f := p.quiet(ctx, in) // the largest are too large for the judge
			if err := f.read(); err != nil {
				t.Fatal(err)
			}
			end := f.events[len(f.events)-1]
			if got := end.member("code"); got != want.code || end.Type == "RUN_ERROR" != (want.code != "") {
				t.Fatalf("it ended with %.300s, want the code %q", end.Data, want.code)
			}
			if got := spokenIn(f.events); want.code == "" && got != want.text {
				t.Errorf("it said %.300q, want %q", got, want.text)
			}
			for _, e := range f.events {
				if !utf8.Valid(e.Data) || len(e.Data) > 5<<20 {
					t.Errorf("an event of %d bytes: %.100s", len(e.Data), e.Data)
				}
			}
			if got := v.called(in.Messages[0].Content); got != want.calls {
				t.Errorf("the model was called %d times, want %d", got, want.calls)
			}
			next := in
			next.RunID, next.Messages = "run-2", []message{in.Messages[0], user(say("And now?"))}
			g := p.quiet(ctx, next)
			if err := g.read(); err != nil || spokenIn(g.events) != fineAnswer {
				t.Errorf("the thread does not go on: %q, %v", spokenIn(g.events), err)
			}
		})
	}
}

func hostileClients(t *testing.T, p *perdure) {
	fine := func(t *testing.T, in input) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		f := p.quiet(ctx, in)
		if err := f.read(); err != nil || spokenIn(f.events) != fineAnswer {
			t.Fatalf("it said %.100q: %v", spokenIn(f.events), err)
		}
		if got := f.events[0].member("threadId"); got != in.ThreadID {
			t.Errorf("the thread %.50q became %.50q", in.ThreadID, got)
		}
	}
	t.Run("ids", func(t *testing.T) {
		t.Parallel()
		for _, id := range []string{
			strings.Repeat(">", 1000), strings.Repeat("*.", 500), strings.Repeat("../", 333), strings.Repeat("😀", 250), strings.Repeat(`"\`, 500), strings.Repeat("\u2028", 333),
			"*", ">", ".", "..", "~", "$JS.API", "%00", "{}", "thread/default/x", "e\u0301" + newThread(), "é" + newThread(),
		} {
			in := newInput(say("hello"))
			in.ThreadID, in.RunID, in.Messages[0].ID = id, id, id
			fine(t, in)
			second := in
			second.RunID, second.Messages = id[:len(id)/2]+"2", []message{in.Messages[0], user(say("again"))}
			if !utf8.ValidString(second.RunID) {
				second.RunID = "2"
			}
			fine(t, second)
		}
	})
	// A queue of the oddest ids there are is carried on by the workflow, which takes no more than
	// 16 KiB.
	t.Run("a queue of odd ids", func(t *testing.T) {
		t.Parallel()
		first := newInput(say("trick:silentMid"))
		first.ThreadID, first.RunID = strings.Repeat("<", 987)+"-"+newThread()[:12], strings.Repeat("&", 1000)
		active := p.follow(t, first)
		active.contents(t, 1)
		second := first.after(strings.Repeat(`"`, 1000), "enqueue", user(say("then")))
		waits := p.follow(t, second)
		active.finish(t)
		waits.finish(t)
		if got := spokenIn(waits.events); got != fineAnswer {
			t.Errorf("the run that waited said %q", got)
		}
	})
	t.Run("10 MB", func(t *testing.T) {
		t.Parallel()
		in := newInput(say("hello " + strings.Repeat("x", 10<<20-1000)))
		fine(t, in)
		in.RunID, in.Messages = "run-2", append(in.Messages, user(say("a little more than fits"+strings.Repeat("x", 1000))))
		resp, err := p.post(t.Context(), assistant, in)
		if r := refused(t, resp, err); r.Status != http.StatusRequestEntityTooLarge || r.Code != "too_large" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("10,000 messages", func(t *testing.T) {
		t.Parallel()
		in := newInput(say("hello"))
		for i := range 9_999 {
			in.Messages = append(in.Messages, message{ID: fmt.Sprint("m", i), Role: "user", Content: mark})
		}
		fine(t, in)
	})
	t.Run("a deep state", func(t *testing.T) {
		t.Parallel()
		in := newInput(say("hello"))
		in.State = json.RawMessage(strings.Repeat(`{"a":`, 500) + `9007199254740993` + strings.Repeat("}", 500))
		fine(t, in)
		in.RunID, in.Messages, in.State = "run-2", append(in.Messages, user(say("again"))), nil
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		f := p.quiet(ctx, in)
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(f.events, func(e event) bool {
			return e.Type == "STATE_SNAPSHOT" && strings.Contains(string(e.Data), `{"a":9007199254740993}`)
		}) {
			t.Errorf("the state is not what it was: %d events", len(f.events))
		}
	})
	t.Run("headers that never end", func(t *testing.T) {
		t.Parallel()
		conn := hang(t, p, "GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-")
		if answer, err := io.ReadAll(conn); err != nil || len(answer) > 1000 {
			t.Errorf("%.200s, %v", answer, err)
		}
		conn = hang(t, p, "GET /v1/agents HTTP/1.1\r\nHost: x\r\nLast-Event-ID: "+strings.Repeat("0", 100_000))
		if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 431 ")) {
			t.Errorf("%.200s, %v", answer, err)
		}
	})
}

// hang opens a connection and sends what is not a whole request.
func hang(t *testing.T, p *perdure, request string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	where, err := p.addresses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(where.API, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}
