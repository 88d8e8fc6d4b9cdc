package models

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

	"github.com/perdure/perdure/e2e/kit"
)

// TestHostileModels: a hostile model server or client gets a clear error or a correct run. The
// thread accepts the next run, and a concurrent run of another client is not affected.
func TestHostileModels(t *testing.T) {
	v := startHostileModel(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = v.environ()
	p.InspectAtEnd(t)
	p.Start(t)
	neighbor := p.Follow(t, kit.NewInput(kit.Marked("trick:neighbor")))
	neighbor.UntilContent(t, 1)

	t.Run("models", func(t *testing.T) { hostileModels(t, p, v) })
	t.Run("clients", func(t *testing.T) { hostileClients(t, p) })

	close(v.release)
	neighbor.Finish(t)
	if got := spokenIn(neighbor.Events); strings.ReplaceAll(got, ".", "") != kit.Mark+" I am the neighbor" || neighbor.Reconnects > 0 || v.countCall(neighbor.In.Messages[0].Content) != 1 {
		t.Errorf("answer of the concurrent run = %q after %d reconnects, want its whole text without any", got, neighbor.Reconnects)
	}
}

// spokenIn returns the last text of a stream.
func spokenIn(events []kit.Event) (text string) {
	for _, e := range events {
		switch e.Type {
		case "TEXT_MESSAGE_START":
			text = ""
		case "TEXT_MESSAGE_CONTENT":
			text += e.Member("delta")
		}
	}
	return text
}

// hostileModels checks runs with hostile models.
func hostileModels(t *testing.T, p *kit.Perdure, v *hostileModel) {
	type expected struct {
		code  string // of RUN_ERROR; "" = the run succeeds
		text  string // of the last answer
		calls int    // model calls
	}
	tooLarge := expected{code: "response_too_large", calls: 1}
	again := expected{text: fineAnswer, calls: 2}
	for trick, want := range map[string]expected{
		"silent": again, "silentMid": again, "endlessComments": again, "html": again, "wholeJSON": again, "garbage": again,
		"halfCall": again, "errorMid": again, "negativeIndex": again,
		"endlessText": tooLarge, "endlessLine": tooLarge, "hugeIndex": tooLarge, "manyCalls": tooLarge, "endlessArguments": tooLarge, "gzipBomb": tooLarge,
		"sameIDs": again, "badArguments": again, // the second call sends their results
		"drip": {text: fineAnswer, calls: 1}, "absurdUsage": {text: fineAnswer, calls: 1}, "afterTheEnd": {text: fineAnswer, calls: 1},
		"noUTF8":   {text: kit.Mark + " \ufffd\ufffd\ufffd € \ufffd \ufffd", calls: 1},
		"controls": {text: kit.Mark + " \x00 \x1b[2J \u2028 \r\n\r\ndata: {} \ufeff \u202e", calls: 1},
		"nothing":  {calls: 1},
		"redirect": {code: "invalid_request", calls: 1},
	} {
		t.Run(trick, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("trick:" + trick))
			ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
			defer cancel()
			f := p.NewUnrecordedFollower(ctx, in) // the largest streams are too large for the reference clients
			if err := f.Read(); err != nil {
				t.Fatal(err)
			}
			end := f.Events[len(f.Events)-1]
			if got := end.Member("code"); got != want.code || end.Type == "RUN_ERROR" != (want.code != "") {
				t.Fatalf("it ended with %.300s, want the code %q", end.Data, want.code)
			}
			if got := spokenIn(f.Events); want.code == "" && got != want.text {
				t.Errorf("the answer is %.300q, want %q", got, want.text)
			}
			for _, e := range f.Events {
				if !utf8.Valid(e.Data) || len(e.Data) > 5<<20 {
					t.Errorf("event of %d bytes: %.100s, want UTF-8 of at most 5 MiB", len(e.Data), e.Data)
				}
			}
			if got := v.countCall(in.Messages[0].Content); got != want.calls {
				t.Errorf("the model was called %d times, want %d", got, want.calls)
			}
			next := in
			next.RunID, next.Messages = "run-2", []kit.Message{in.Messages[0], kit.UserMessage(kit.Marked("And now?"))}
			g := p.NewUnrecordedFollower(ctx, next)
			if err := g.Read(); err != nil || spokenIn(g.Events) != fineAnswer {
				t.Errorf("answer of the next run = %q, %v, want %q", spokenIn(g.Events), err, fineAnswer)
			}
		})
	}
}

// hostileClients checks requests of hostile clients.
func hostileClients(t *testing.T, p *kit.Perdure) {
	fine := func(t *testing.T, in kit.Input) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
		defer cancel()
		f := p.NewUnrecordedFollower(ctx, in)
		if err := f.Read(); err != nil || spokenIn(f.Events) != fineAnswer {
			t.Fatalf("answer = %.100q, %v, want %q", spokenIn(f.Events), err, fineAnswer)
		}
		if got := f.Events[0].Member("threadId"); got != in.ThreadID {
			t.Errorf("thread = %.50q, want %.50q", got, in.ThreadID)
		}
	}
	t.Run("ids", func(t *testing.T) {
		t.Parallel()
		for _, id := range []string{
			strings.Repeat(">", 1000), strings.Repeat("*.", 500), strings.Repeat("../", 333), strings.Repeat("😀", 250), strings.Repeat(`"\`, 500), strings.Repeat("\u2028", 333),
			"*", ">", ".", "..", "~", "$JS.API", "%00", "{}", "thread/default/x", "e\u0301" + kit.NewThread(), "é" + kit.NewThread(),
		} {
			in := kit.NewInput(kit.Marked("hello"))
			in.ThreadID, in.RunID, in.Messages[0].ID = id, id, id
			fine(t, in)
			second := in
			second.RunID, second.Messages = id[:len(id)/2]+"2", []kit.Message{in.Messages[0], kit.UserMessage(kit.Marked("again"))}
			if !utf8.ValidString(second.RunID) {
				second.RunID = "2"
			}
			fine(t, second)
		}
	})
	// The workflow carries the queue when it continues as new, and accepts at most 16 KiB of ids.
	t.Run("a queue of odd ids", func(t *testing.T) {
		t.Parallel()
		first := kit.NewInput(kit.Marked("trick:silentMid"))
		first.ThreadID, first.RunID = strings.Repeat("<", 987)+"-"+kit.NewThread()[:12], strings.Repeat("&", 1000)
		active := p.Follow(t, first)
		active.UntilContent(t, 1)
		second := first.NextRun(strings.Repeat(`"`, 1000), "enqueue", kit.UserMessage(kit.Marked("then")))
		waits := p.Follow(t, second)
		active.Finish(t)
		waits.Finish(t)
		if got := spokenIn(waits.Events); got != fineAnswer {
			t.Errorf("answer of the queued run = %q, want %q", got, fineAnswer)
		}
	})
	t.Run("10 MB", func(t *testing.T) {
		t.Parallel()
		in := kit.NewInput(kit.Marked("hello " + strings.Repeat("x", 10<<20-1000)))
		fine(t, in)
		in.RunID, in.Messages = "run-2", append(in.Messages, kit.UserMessage(kit.Marked("a little more than fits"+strings.Repeat("x", 1000))))
		resp, err := p.Post(t.Context(), kit.AssistantPath, in)
		if r := kit.ReadProblem(t, resp, err); r.Status != http.StatusRequestEntityTooLarge || r.Code != "too_large" {
			t.Errorf("large input: got %+v, want too_large", r)
		}
	})
	t.Run("10,000 messages", func(t *testing.T) {
		t.Parallel()
		in := kit.NewInput(kit.Marked("hello"))
		for i := range 9_999 {
			in.Messages = append(in.Messages, kit.Message{ID: fmt.Sprint("m", i), Role: "user", Content: kit.Mark})
		}
		fine(t, in)
	})
	t.Run("a deep state", func(t *testing.T) {
		t.Parallel()
		in := kit.NewInput(kit.Marked("hello"))
		in.State = json.RawMessage(strings.Repeat(`{"a":`, 500) + `9007199254740993` + strings.Repeat("}", 500))
		fine(t, in)
		in.RunID, in.Messages, in.State = "run-2", append(in.Messages, kit.UserMessage(kit.Marked("again"))), nil
		ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
		defer cancel()
		f := p.NewUnrecordedFollower(ctx, in)
		if err := f.Read(); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(f.Events, func(e kit.Event) bool {
			return e.Type == "STATE_SNAPSHOT" && strings.Contains(string(e.Data), `{"a":9007199254740993}`)
		}) {
			t.Errorf("state after %d events has changed, want its numbers kept", len(f.Events))
		}
	})
	t.Run("headers that never end", func(t *testing.T) {
		t.Parallel()
		conn := hang(t, p, "GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-")
		if answer, err := io.ReadAll(conn); err != nil || len(answer) > 1000 {
			t.Errorf("slow request: got %.200s, %v, want a short answer", answer, err)
		}
		conn = hang(t, p, "GET /v1/agents HTTP/1.1\r\nHost: x\r\nLast-Event-ID: "+strings.Repeat("0", 100_000))
		if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 431 ")) {
			t.Errorf("large headers: got %.200s, %v, want the status 431", answer, err)
		}
	})
}

// hang opens a connection and sends a part of a request.
func hang(t *testing.T, p *kit.Perdure, request string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	where, err := p.Addresses(ctx)
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
