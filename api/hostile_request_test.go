package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
)

// activeViewer is a run of another client, in the middle of a message. Whatever a test does to the
// node, the viewer of this run receives all of its events, and no others.
type activeViewer struct {
	viewer *frameReader
	goOn   func()
}

// startActiveViewer starts a run and a viewer of it that has received half of a message.
func (n *node) startActiveViewer() *activeViewer {
	n.t.Helper()
	goOn := n.emitHalfMessages()
	body, err := json.Marshal(inputOf("neighbor", "hello"))
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodPost, n.http.URL+runsPath, bytes.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = resp.Body.Close() })
	b := &activeViewer{viewer: &frameReader{t: n.t, body: bufio.NewScanner(resp.Body)}, goOn: func() { goOn("neighbor") }}
	b.viewer.until("Hel")
	return b
}

// wantUntouched completes the run, and checks that its viewer receives the other half and the end.
func (b *activeViewer) wantUntouched() {
	b.viewer.t.Helper()
	b.goOn()
	const want = "TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"
	if got := types(b.viewer.until("RUN_FINISHED")); got != want {
		b.viewer.t.Errorf("the neighbor's viewer saw %s, want %s", got, want)
	}
}

const runsPath = "/v1/agents/a/runs"

// TestInvalidIDs: each ID of an input may be any valid text. Other IDs are refused with their
// pointer, because they could not be told apart.
func TestInvalidIDs(t *testing.T) {
	t.Parallel()
	node := setup(t)
	b := node.startActiveViewer()
	long := strings.Repeat("x", stream.MaxIDBytes+1)
	for _, bad := range []string{`\u0000`, `a\u0000b`, `\n`, `\u001b[2J`, `\u007f`, `\u0085`, `\ud800`, `\udc00x`, `\ufffd`, long, strings.Repeat("😀", 251)} {
		for pointer, format := range map[string]string{
			"/threadId":                  `{"threadId":"%s","runId":"r","messages":[]}`,
			"/runId":                     `{"threadId":"x","runId":"%s","messages":[]}`,
			"/parentRunId":               `{"threadId":"x","runId":"r","parentRunId":"%s","messages":[]}`,
			"/messages/0/id":             `{"threadId":"x","runId":"r","messages":[{"id":"%s","role":"user","content":"x"}]}`,
			"/messages/0/toolCallId":     `{"threadId":"x","runId":"r","messages":[{"id":"m","role":"tool","toolCallId":"%s","content":"x"}]}`,
			"/messages/0/toolCalls/0/id": `{"threadId":"x","runId":"r","messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"%s","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
		} {
			a := node.do(http.MethodPost, runsPath, fmt.Sprintf(format, bad))
			a.wantStatus(t, fmt.Sprintf("%.20s as %s: status", bad, pointer), http.StatusBadRequest)
			wantEqual(t, fmt.Sprintf("%.20s as %s: problem code", bad, pointer), a.problem.Code, "invalid_input")
			wantEqual(t, fmt.Sprintf("%.20s as %s: problem pointer", bad, pointer), a.problem.Pointer, pointer)
			if len(a.body) > 500 {
				t.Errorf("%.20s as %s: length of the body = %v, want at most %v", bad, pointer, len(a.body), 500)
			}
		}
		steer := node.do(http.MethodPost, "/v1/threads/t/messages", `{"message":{"id":"`+bad+`","role":"user","content":"x"}}`)
		wantEqual(t, fmt.Sprintf("%.20s in steering: status", bad), steer.status, http.StatusBadRequest)
		wantEqual(t, fmt.Sprintf("%.20s in steering: problem pointer", bad), steer.problem.Pointer, "/message/id")
	}
	for _, bad := range []string{"%00", "%FF", "%ED%A0%80", "a%0Ab", "%EF%BF%BD", "%C0%AF", long} {
		for _, path := range []string{"/v1/threads/%s/runs/r/events", "/v1/threads/t/runs/%s/events", "/v1/threads/%s/events"} {
			if a := node.do(http.MethodGet, fmt.Sprintf(path, bad), ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" {
				t.Errorf("%.20s in %s: got %d %.500s, want %d invalid_input", bad, path, a.status, a.body, http.StatusBadRequest)
			}
		}
		for _, path := range []string{"/v1/threads/%s/runs/r/cancel", "/v1/threads/t/runs/%s/cancel", "/v1/threads/%s/messages", "/v1/threads/%s/pause"} {
			if a := node.do(http.MethodPost, fmt.Sprintf(path, bad), `{"message":{"id":"m","role":"user","content":"x"}}`); a.status != http.StatusBadRequest {
				t.Errorf("%.20s in %s: status = %v, want %v; body: %s", bad, path, a.status, http.StatusBadRequest, a.body)
			}
		}
	}
	if a := node.do(http.MethodPost, "/v1/agents/"+url.PathEscape(strings.Repeat("../*>\x00", 500))+"/runs", "{}"); a.status != http.StatusNotFound || len(a.body) > 500 {
		t.Errorf("invalid agent: got %d %.500s, want %d with at most 500 bytes", a.status, a.body, http.StatusNotFound)
	}
	b.wantUntouched()
}

// TestSimilarIDsAreDifferent: IDs that look alike, or that file systems or NATS may treat as equal,
// are different IDs.
func TestSimilarIDsAreDifferent(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	for _, twins := range [][]string{
		{"é", "e\u0301"}, {"A", "a"}, {"ﬁ", "fi"}, {"a", "a ", " a"}, {"*", ">", "**", "*.>", "t.*"}, {"a.b", "a/b", "a%2Fb", "a%252Fb"}, {".", "..", "...", "./"},
		{"\u202eabc", "abc"}, {"a\u200db", "ab"}, {"ß", "ss", "ẞ"}, {"İ", "i", "I", "ı"},
	} {
		bodies := map[string]string{}
		for _, id := range twins {
			in := inputOf(id, "I am "+id)
			in.ThreadID, in.Messages[0].ID = id, id
			a := node.post(in)
			a.mustStatus(t, fmt.Sprintf("%q: status", id), http.StatusOK)
			bodies[id] = a.body
		}
		for id, body := range bodies {
			segment := strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
			read := node.do(http.MethodGet, "/v1/threads/"+segment+"/runs/"+segment+"/events", "")
			wantEqual(t, fmt.Sprintf("events of %q", id), read.body, body)
			page := node.page("/v1/threads/" + segment + "/events?follow=false")
			started, _ := json.Marshal(id)
			if len(page.Items) == 0 {
				t.Errorf("thread %q: number of events = %v, want at least 1", id, len(page.Items))
			}
			if !strings.Contains(string(page.Items[0].Event), `"threadId":`+string(started)) {
				t.Errorf("thread %q: first event = %q, want text with %q", id, string(page.Items[0].Event), `"threadId":`+string(started))
			}
			for other, foreign := range bodies {
				if other != id && foreign == body {
					t.Errorf("%q and %q have the same run, want different runs", id, other)
				}
			}
		}
	}
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	node := setup(t)
	b := node.startActiveViewer()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 100 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	message := func(i int) string { return fmt.Sprintf(`{"id":"m%d","role":"user","content":""}`, i) }
	list := func(count int, entry func(int) string) string {
		entries := make([]string, count)
		for i := range entries {
			entries[i] = entry(i)
		}
		return strings.Join(entries, ",")
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	begin, rest := `{"threadId":"x","runId":"r",`, `"messages":[`+message(0)+`]`
	for name, tt := range map[string]struct {
		body        string
		header      []string
		wantStatus  int
		wantCode    string
		wantPointer string
	}{
		"a form":                  {begin + rest + "}", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", ""},
		"text, as any page may":   {begin + rest + "}", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", ""},
		"an invalid media type":   {begin + rest + "}", []string{"Content-Type", ";;;"}, 415, "unsupported_media_type", ""},
		"a gzip bomb":             {bomb.String(), []string{"Content-Encoding", "gzip"}, 415, "unsupported_media_type", ""},
		"an undeclared gzip bomb": {bomb.String(), nil, 400, "invalid_input", ""},
		"a byte order mark":       {"\ufeff" + begin + rest + "}", nil, 400, "invalid_input", ""},
		"UTF-16":                  {"\xff\xfe{\x00}\x00", nil, 400, "invalid_input", ""},
		"no UTF-8":                {begin + `"messages":[{"id":"m","role":"user","content":"` + "\xff" + `"}]}`, nil, 400, "invalid_input", ""},
		"cut in a string":         {begin + `"messages":[{"id":"m`, nil, 400, "invalid_input", ""},
		"NULs":                    {strings.Repeat("\x00", 1000), nil, 400, "invalid_input", ""},
		"a member twice":          {begin + `"threadId":"neighbor",` + rest + "}", nil, 400, "invalid_input", "/threadId"},
		"the messages twice":      {begin + rest + "," + rest + "}", nil, 400, "invalid_input", "/messages"},
		"an id twice":             {begin + `"messages":[` + message(1) + "," + message(1) + "]}", nil, 400, "invalid_input", "/messages/1/id"},
		"many messages":           {begin + `"messages":[` + list(10_001, message) + "]}", nil, 400, "invalid_input", "/messages"},
		"many tools":              {begin + `"tools":[` + list(1001, func(int) string { return `{"name":"n","description":""}` }) + "]," + rest + "}", nil, 400, "invalid_input", "/tools"},
		"a deep state":            {begin + `"state":` + deep + "," + rest + "}", nil, 400, "invalid_input", "/state"},
		"a deep state, less so":   {begin + `"state":` + deep[95_000:105_000] + "," + rest + "}", nil, 400, "invalid_input", "/state"},
		"deep forwarded props":    {begin + `"forwardedProps":` + deep + "," + rest + "}", nil, 400, "invalid_input", "/forwardedProps"},
		"deep and nothing else":   {deep, nil, 400, "invalid_input", ""},
		"deep and never ending":   {strings.Repeat(`{"a":`, 200_000), nil, 400, "invalid_input", "/a"},
		"a number too large":      {begin + `"messages":[{"id":"m","role":"user","content":1e999}]}`, nil, 400, "invalid_input", "/messages/0/content"},
		"a long word":             {begin + `"resume":[{"interruptId":"i","status":"` + strings.Repeat("x", 500_000) + `"}],` + rest + "}", nil, 400, "invalid_input", "/resume/0/status"},
		"too much":                {begin + `"state":"` + strings.Repeat("x", 2<<20) + `"}`, nil, 413, "too_large", ""},
		"props of another shape":  {begin + `"forwardedProps":{"perdure":[]},` + rest + "}", nil, 400, "invalid_input", "/forwardedProps/perdure"},
	} {
		a := node.do(http.MethodPost, runsPath, tt.body, tt.header...)
		if a.status != tt.wantStatus || a.problem.Code != tt.wantCode || a.problem.Pointer != tt.wantPointer || len(a.body) > 500 {
			t.Errorf("%s: %d %.500s, want %d %s at %q", name, a.status, a.body, tt.wantStatus, tt.wantCode, tt.wantPointer)
		}
	}
	if a := node.do(http.MethodGet, "/v1/threads/x/runs/r/events", ""); a.status != http.StatusNotFound {
		t.Errorf("run of a refused input: got %d %.500s, want 404", a.status, a.body)
	}
	b.wantUntouched()
}

// TestNumbersKeepDigits: numbers of a client's state keep all their digits.
func TestNumbersKeepDigits(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	const state = `{"big":12345678901234567890123,"safe":9007199254740993,"zero":-0,"small":1e-400,"huge":1e999,"exact":0.10}`
	a := node.do(http.MethodPost, runsPath, `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[],"state":`+state+`}`)
	a.mustStatus(t, "status", http.StatusOK)
	in, err := node.log.Input(node.ctx(), node.temporal.starts[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "state in the log", string(in.Input.State), state)
}

// sendPartially returns a connection that sends a request, and then nothing.
func (n *node) sendPartially(request string) (*bufio.Reader, net.Conn) {
	n.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(n.ctx(), "tcp", strings.TrimPrefix(n.http.URL, "http://"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	deadline, _ := n.ctx().Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		n.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		n.t.Fatal(err)
	}
	return bufio.NewReader(conn), conn
}

// TestSlowBodies: a body that does not arrive in time gets an answer, and its connection is closed.
// The same holds for a body that the server does not read.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.BodyTime = 300 * time.Millisecond })
	b := node.startActiveViewer() // silent for longer than that
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		runsPath:                             {http.StatusRequestTimeout, "body_timeout"},
		"/v1/threads/t/runs/neighbor/cancel": {http.StatusRequestTimeout, "body_timeout"},
		"/v1/threads/t/messages":             {http.StatusRequestTimeout, "body_timeout"},
		"/v1/agents/nobody/runs":             {http.StatusNotFound, "unknown_agent"},
		"/nowhere":                           {http.StatusNotFound, "not_found"},
	} {
		for _, length := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
			r, _ := node.sendPartially("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + length + "\r\n\r\n")
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", path, length, err)
			}
			var p problem.Problem
			if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Status != want.status || p.Code != want.code {
				t.Errorf("%s, length %s: got %+v, %v, want %d %s", path, length, p, err, want.status, want.code)
			}
			_ = resp.Body.Close()
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: connection: got %v, want EOF", path, length, err)
			}
		}
	}
	b.wantUntouched()
}

// TestEndlessBody: the server stops reading a body at its bound.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	node := setup(t)
	endless := io.MultiReader(strings.NewReader(`{"threadId":"x","runId":"r","messages":[{"id":"m","role":"user","content":"`), endlessReader('x'))
	req, err := http.NewRequestWithContext(node.ctx(), http.MethodPost, node.http.URL+runsPath, endless)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := node.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	wantEqual(t, "status", resp.StatusCode, http.StatusRequestEntityTooLarge)
}

// endlessReader is a reader of one byte that never ends.
type endlessReader byte

func (f endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

// TestHostileRequests: hostile headers, queries and methods do no harm.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	node := setup(t)
	b := node.startActiveViewer()
	const events = "/v1/threads/t/runs/neighbor/events"
	for _, tt := range []struct {
		method, path string
		header       []string
		wantStatus   int
		wantCode     string
	}{
		{"GET", events, []string{"Last-Event-ID", strings.Repeat("0", 50_000)}, 400, "invalid_cursor"},
		{"GET", events, []string{"Last-Event-ID", "-1-x"}, 400, "invalid_cursor"},
		{"GET", events + "?after=" + strings.Repeat("%F0%9F%98%80", 1000), nil, 400, "invalid_cursor"},
		{"GET", events + "?join=maybe", nil, 400, "invalid_input"},
		{"GET", events + "?limit=-1", []string{"Accept", "application/json"}, 400, "invalid_input"},
		{"GET", events + "?limit=99999999999999999999", []string{"Accept", "application/json"}, 400, "invalid_input"},
		{"GET", events + "?" + strings.Repeat("after=b&", 10_000) + "after=x", nil, 400, "invalid_input"},
		{"GET", events + "?after=%zz", nil, 400, "invalid_input"},
		{"GET", "/v1/threads/t/events?follow=false;after=x", nil, 400, "invalid_input"},
		{"BREW", events, nil, 405, "method_not_allowed"},
		{"TRACE", "/v1/agents", nil, 405, "method_not_allowed"},
		{"GET", "/v1/threads/t/../../agents/a/runs/x", nil, 404, "not_found"},
		{"GET", "//v1///agents", nil, 404, "not_found"},
	} {
		a := node.do(tt.method, tt.path, "", tt.header...)
		a.wantStatus(t, fmt.Sprintf("%s %.80s %.80s: status", tt.method, tt.path, tt.header), tt.wantStatus)
		wantEqual(t, fmt.Sprintf("%s %.80s %.80s: problem code", tt.method, tt.path, tt.header), a.problem.Code, tt.wantCode)
		if len(a.body) > 500 {
			t.Errorf("%s %.80s %.80s: length of the body = %v, want at most %v", tt.method, tt.path, tt.header, len(a.body), 500)
		}
	}
	for _, accept := range []string{strings.Repeat("text/html;q=0.1,", 2000), "*/*;q=NaN", "application/json;q=0, text/event-stream", ";;;,,,"} {
		w := node.watch(events, "Accept", accept)
		w.until("Hel")
		w.close()
	}
	r, _ := node.sendPartially("GET /healthz HTTP/1.0\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "status of HTTP/1.0", resp.StatusCode, http.StatusOK)
	b.wantUntouched()
}

// TestStreamsAreBounded: a node sends at most Config.Streams streams, over all
// transports together. A request beyond that is refused, and starts no run.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.MaxStreams = 2 })
	b := node.startActiveViewer() // one
	c := node.dial()
	c.send(subscribeFrame("1", "neighbor", ""))
	c.want("ack", "1")
	full := func(what string, status int, code string, retryAfter bool) {
		t.Helper()
		if status != http.StatusServiceUnavailable || code != "node_full" || !retryAfter {
			t.Errorf("%s: got %d %s, Retry-After %t, want %d node_full with Retry-After", what, status, code, retryAfter, http.StatusServiceUnavailable)
		}
	}
	for what, a := range map[string]answer{
		"a run":    node.post(inputOf("r2", "hello")),
		"a viewer": node.do(http.MethodGet, "/v1/threads/t/runs/neighbor/events", ""),
		"a thread": node.do(http.MethodGet, "/v1/threads/t/events", ""),
	} {
		full(what, a.status, a.problem.Code, a.header.Get("Retry-After") != "")
	}
	other := node.dial()
	for _, frame := range []map[string]any{subscribeFrame("1", "neighbor", ""), runFrame("1", inputOf("r3", "hello"))} {
		other.send(frame)
		f := other.want("error", "1")
		full("a frame", f.Status, f.Code, f.RetryAfter > 0)
	}
	if len(node.temporal.starts) != 1 {
		t.Errorf("started runs: got %d, want 1", len(node.temporal.starts))
	}
	c.send(map[string]any{"type": "unsubscribe", "id": "1"})
	c.until("1", "ack")
	other.send(subscribeFrame("1", "neighbor", ""))
	other.want("ack", "1") // the stream's room is free again
	b.wantUntouched()
}

// TestSocketsAreBounded: a socket beyond the node's bound is refused before its upgrade.
func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.MaxSockets = 2 })
	first, second := node.dial(), node.dial()
	handshake := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	a := node.do(http.MethodGet, "/v1/ws", "", handshake...)
	a.wantStatus(t, "status", http.StatusServiceUnavailable)
	wantEqual(t, "problem code", a.problem.Code, "node_full")
	if a.header.Get("Retry-After") == "" {
		t.Error("header Retry-After is empty, want a value")
	}
	first.ping("1")
	second.ping("1")
	first.disconnect()
	waitFor(t, func() bool {
		return node.do(http.MethodGet, "/v1/ws", "", "Connection", "Upgrade").status != http.StatusServiceUnavailable
	})
	node.dial().ping("1")
	second.ping("2")
}

// waitFor checks a condition repeatedly until it holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		mustEqual(t, "deadline is over", time.Now().After(deadline), false)
	}
}
