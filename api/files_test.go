package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// fileNode is a node with files, whose callers have the subject of a header.
type fileNode struct {
	*node

	store *files.Store
	index *files.Index
}

// setupFiles returns a node with files of at most maxSize bytes.
func setupFiles(t *testing.T, maxSize int64, change ...func(*api.Config)) *fileNode {
	t.Helper()
	f := &fileNode{}
	withFiles := func(c *api.Config) {
		var err error
		if f.store, err = files.Open(t.Context(), c.Log, files.Options{MaxSize: maxSize}); err != nil {
			t.Fatal(err)
		}
		if f.index, err = f.store.Watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.index.Stop)
		c.Files = &api.Files{Store: f.store, Index: f.index}
		c.Auth = byHeader
	}
	f.node = setup(t, append([]func(*api.Config){withFiles}, change...)...)
	return f
}

// upload uploads a file, and returns its description.
func (n *fileNode) upload(name, mediaType, content string, caller ...string) (f struct{ ID, URL, Name, Type, ExpiresAt string }) {
	n.t.Helper()
	a := n.do(http.MethodPost, "/v1/files?name="+name, content, append([]string{"Content-Type", mediaType}, caller...)...)
	a.mustStatus(n.t, "upload", http.StatusCreated)
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		n.t.Fatal(err)
	}
	wantEqual(n.t, "header Location", a.header.Get("Location"), f.URL)
	return f
}

func TestUploadAndDownload(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	ann, bob := headersOf("ann"), headersOf("bob")
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("0123456789", 50_000)
	f := n.upload("%2Fhome%2Fann%2Fcät.png", "application/x-shockwave-flash", png, ann...)
	wantEqual(t, "name", f.Name, "cät.png")
	wantEqual(t, "type", f.Type, "image/png")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := n.do(method, f.URL, "", ann...)
		a.mustStatus(t, method, http.StatusOK)
		if method == http.MethodGet && a.body != png {
			t.Errorf("body has %d bytes, want the %d of the file", len(a.body), len(png))
		}
		for name, want := range map[string]string{
			"Content-Type": "image/png", "Content-Length": fmt.Sprint(len(png)), "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "inline; filename*=utf-8''c%C3%A4t.png",
			"Cache-Control": "private, no-cache", "Accept-Ranges": "bytes",
		} {
			wantEqual(t, method+" header "+name, a.header.Get(name), want)
		}
	}
	a := n.do(http.MethodGet, f.URL, "", append(ann, "Range", "bytes=300000-300009")...)
	a.mustStatus(t, "range", http.StatusPartialContent)
	wantEqual(t, "range", a.body, png[300000:300010])
	a = n.do(http.MethodGet, f.URL, "", append(ann, "Range", "bytes=9000000-")...)
	a.wantStatus(t, "range after the end", http.StatusRequestedRangeNotSatisfiable)
	wantEqual(t, "code of a range after the end", a.problem.Code, "range_not_satisfiable")
	for name, want := range map[string]string{"Content-Type": "application/problem+json", "Content-Range": fmt.Sprint("bytes */", len(png)), "Content-Disposition": ""} {
		wantEqual(t, "header "+name+" of a range after the end", a.header.Get(name), want)
	}
	a = n.do(http.MethodGet, f.URL, "", append(ann, "If-Match", `"file_other"`)...)
	a.wantStatus(t, "another ETag", http.StatusPreconditionFailed)
	wantEqual(t, "code of another ETag", a.problem.Code, "precondition_failed")
	wantEqual(t, "header ETag of another ETag", a.header.Get("ETag"), "")
	n.do(http.MethodGet, f.URL, "", append(ann, "Range", "bytes=0-0"+strings.Repeat(",2-2", 15))...).wantStatus(t, "16 ranges", http.StatusPartialContent)
	n.do(http.MethodGet, f.URL, "", append(ann, "Range", "bytes=0-0"+strings.Repeat(",2-2", 16))...).wantStatus(t, "17 ranges", http.StatusOK)
	for _, ranges := range []string{"items=0-1", "bytes=-0", "bytes=0-0,-00"} {
		n.do(http.MethodGet, f.URL, "", append(ann, "Range", ranges)...).wantStatus(t, ranges, http.StatusOK)
	}
	n.do(http.MethodHead, f.URL, "", append(ann, "Range", "bytes=0-0")...).wantStatus(t, "HEAD with a range", http.StatusOK)
	n.do(http.MethodGet, f.URL, "", append(ann, "If-None-Match", `"`+f.ID+`"`)...).wantStatus(t, "unchanged", http.StatusNotModified)

	html := n.upload("page.html", "text/html", "<html><script>alert(1)</script>", ann...)
	a = n.do(http.MethodGet, html.URL, "", ann...)
	wantEqual(t, "disposition of HTML", a.header.Get("Content-Disposition"), "attachment; filename=page.html")

	n.do(http.MethodGet, f.URL, "", bob...).wantStatus(t, "another caller", http.StatusForbidden)
	n.do(http.MethodDelete, f.URL, "", bob...).wantStatus(t, "deletion by another caller", http.StatusForbidden)
	for _, method := range []string{http.MethodGet, http.MethodDelete} { // the helper cannot read the problem of HEAD
		n.do(method, f.URL, "", "X-Tenant", "globex", "X-User", "ann").wantStatus(t, method+" from another tenant", http.StatusNotFound)
	}
	a = n.do(http.MethodGet, "/v1/files?limit=1", "", ann...)
	if !strings.Contains(a.body, html.ID) || strings.Contains(a.body, f.ID) || !strings.Contains(a.body, `"nextCursor"`) {
		t.Errorf("first page = %s, want the newest file", a.body)
	}
	var page struct{ NextCursor string }
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		t.Fatal(err)
	}
	a = n.do(http.MethodGet, "/v1/files?limit=1&cursor="+page.NextCursor, "", ann...)
	if !strings.Contains(a.body, f.ID) || strings.Contains(a.body, html.ID) || strings.Contains(a.body, `"nextCursor"`) {
		t.Errorf("second page = %s, want the older file", a.body)
	}
	n.do(http.MethodGet, "/v1/files?cursor=123", "", ann...).wantStatus(t, "an invalid cursor", http.StatusBadRequest)
	wantEqual(t, "list of another caller", n.do(http.MethodGet, "/v1/files", "", bob...).body, `{"items":[]}`)
	n.do(http.MethodDelete, f.URL, "", ann...).wantStatus(t, "deletion", http.StatusNoContent)
	a = n.do(http.MethodGet, f.URL, "", ann...)
	wantEqual(t, "code of a deleted file", a.problem.Code, "unknown_file")
}

func TestUploadBounds(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 100<<10, quotasOf(t, "default: {fileBytes: 150000}"))
	ann := headersOf("ann")
	a := n.do(http.MethodPost, "/v1/files", strings.Repeat("x", 100<<10+1), ann...)
	wantEqual(t, "code of a large file", a.problem.Code, "too_large")
	a = n.do(http.MethodPost, "/v1/files", "", ann...)
	wantEqual(t, "code of an empty file", a.problem.Code, "empty_file")
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n%PDF-1.7\r\n--b--\r\n"
	a = n.do(http.MethodPost, "/v1/files", form, append([]string{"Content-Type", "multipart/form-data; boundary=b"}, ann...)...)
	a.wantStatus(t, "a form", http.StatusUnsupportedMediaType)
	f := n.upload("a", "", strings.Repeat("x", 100<<10), ann...)
	n.awaitBytes(100 << 10)
	a = n.do(http.MethodPost, "/v1/files", strings.Repeat("y", 100<<10), ann...)
	a.wantStatus(t, "beyond the quota", http.StatusTooManyRequests)
	wantEqual(t, "quota", a.problem.Quota, string(quota.FileBytes))
	n.do(http.MethodDelete, f.URL, "", ann...).wantStatus(t, "deletion", http.StatusNoContent)
	n.awaitBytes(0)
	n.upload("b", "", strings.Repeat("y", 100<<10), ann...)
}

// TestConcurrentUploadsShareQuota: an upload that is under way counts, so concurrent ones cannot exceed the
// quota together.
func TestConcurrentUploadsShareQuota(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 100<<10, quotasOf(t, "default: {fileBytes: 150000}"))
	ann, first := headersOf("ann"), make(chan answer, 1)
	body, rest := io.Pipe()
	go func() { first <- n.doWith(http.MethodPost, "/v1/files", body, 100<<10, ann...) }()
	if _, err := io.WriteString(rest, strings.Repeat("x", 50<<10)); err != nil {
		t.Fatal(err)
	}
	n.awaitBytes(100 << 10)
	a := n.do(http.MethodPost, "/v1/files", strings.Repeat("y", 100<<10), ann...)
	a.wantStatus(t, "during the first upload", http.StatusTooManyRequests)
	wantEqual(t, "quota", a.problem.Quota, string(quota.FileBytes))
	n.upload("small", "", "text", ann...)
	if _, err := io.WriteString(rest, strings.Repeat("x", 50<<10)); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	(<-first).wantStatus(t, "first upload", http.StatusCreated)
	n.awaitBytes(100<<10 + 4)
}

// doWith sends a request whose body has a size.
func (n *fileNode) doWith(method, path string, body io.Reader, size int64, header ...string) (a answer) {
	req, err := http.NewRequestWithContext(n.ctx(), method, n.http.URL+path, body)
	if err != nil {
		n.t.Error(err)
		return a
	}
	req.ContentLength = size
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Error(err)
		return a
	}
	_ = resp.Body.Close()
	return answer{status: resp.StatusCode, header: resp.Header}
}

// awaitBytes waits until the index has a number of bytes of the tenant, also reserved ones.
func (n *fileNode) awaitBytes(want int64) {
	n.t.Helper()
	n.awaitIndex(func(x *files.Index) bool { return x.Bytes("alpha") == want })
}

// awaitIndex waits until the index has a property.
func (n *fileNode) awaitIndex(has func(*files.Index) bool) {
	n.t.Helper()
	for {
		changed := n.index.Changed()
		if has(n.index) {
			return
		}
		select {
		case <-changed:
		case <-n.ctx().Done():
			n.t.Fatal(n.ctx().Err())
		}
	}
}

// imageMessage returns a message with a source of an image.
func imageMessage(id string, source agui.PartSource) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{
		agui.TextPart("what is this"), {Type: agui.PartImage, Source: &source, Metadata: json.RawMessage(`{"filename":"a.png"}`)},
	})}
}

// send posts an input with messages to the thread "t" of the agent "a".
func (n *fileNode) send(run string, caller []string, messages ...agui.Message) answer {
	n.t.Helper()
	body, err := json.Marshal(agui.RunAgentInput{ThreadID: "t", RunID: run, ProtocolVersion: "1.0", Messages: messages})
	if err != nil {
		n.t.Fatal(err)
	}
	return n.do(http.MethodPost, "/v1/agents/a/runs", string(body), caller...)
}

// TestDataOfInputIsMoved: base64 data of an input becomes a file, and the log has its URL. A client that
// sends its list with the data again changes nothing.
func TestDataOfInputIsMoved(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	n.answerRuns()
	ann, thread := headersOf("ann"), stream.Thread{Tenant: "alpha", ID: "t"}
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels"), 5000)...)
	first := imageMessage("u1", agui.PartSource{Type: agui.SourceData, Value: base64.StdEncoding.EncodeToString(png), MimeType: "image/jpeg"})
	n.send("r1", ann, first).mustStatus(t, "first run", http.StatusOK)
	snap, err := n.snapshots.Latest(n.ctx(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	source := snap.Entries[0].Message.Content.Parts()[1].Source
	if source.Type != agui.SourceURL || source.MimeType != "image/png" {
		t.Fatalf("source = %.100v, want the URL of a PNG", source)
	}
	a := n.do(http.MethodGet, source.Value, "", ann...)
	wantEqual(t, "moved bytes", a.body, string(png))
	wantEqual(t, "disposition", a.header.Get("Content-Disposition"), "inline; filename=a.png")
	second := agui.Message{ID: "u2", Role: agui.RoleUser, Content: agui.TextContent("and now?")}
	n.send("r2", ann, first, second).mustStatus(t, "second run", http.StatusOK)
	if snap, err = n.snapshots.Latest(n.ctx(), thread, 0); err != nil {
		t.Fatal(err)
	}
	if len(snap.Entries) != 4 || snap.Entries[0].Message.Content.Parts()[1].Source.Value != source.Value {
		t.Errorf("conversation after the second run has %d messages, want 4, the first one unchanged", len(snap.Entries))
	}
	wantEqual(t, "files", len(n.index.OfThread(thread)), 1)
}

// TestDataURLOfInputIsMoved: the data of a data: URL becomes a file as base64 data does, also of a part
// from before AG-UI 1.0. A small one stays in the message, and a malformed one is refused.
func TestDataURLOfInputIsMoved(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 64<<10)
	n.answerRuns()
	ann, thread := headersOf("ann"), stream.Thread{Tenant: "alpha", ID: "t"}
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels"), 5000)...)
	encoded := base64.StdEncoding.EncodeToString(png)
	urlPart := func(value string) string { return `{"type":"image","source":{"type":"url","value":"` + value + `"}}` }
	post := func(run string, parts ...string) answer {
		body := `{"threadId":"t","runId":"` + run + `","tools":[],"context":[],"messages":[{"id":"u1","role":"user","content":[` + strings.Join(parts, ",") + `]}]}`
		return n.do(http.MethodPost, "/v1/agents/a/runs", body, ann...)
	}
	for value, reason := range map[string]string{
		"data:image/png;base64":      "no comma",
		"data:image/png;base64,????": "no base64",
		"data:image/;base64,AAAA":    "no media type",
		"data:text/plain,%zz":        "no percent-encoding",
		"data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, 64<<10+1)): "too large",
	} {
		a := post("r0", `{"type":"text","text":"see"}`, urlPart(value))
		wantEqual(t, reason, fmt.Sprint(a.status, a.problem.Code, a.problem.Pointer), "400invalid_input/messages/0/content/1/source/value")
	}
	post("r1",
		urlPart("data:image/jpeg;base64,"+encoded),
		urlPart("DATA:image/png;name=a;BASE64,"+strings.NewReplacer("+", "%2B", "/", "%2F").Replace(encoded)),
		`{"type":"binary","mimeType":"image/png","url":"data:image/png;base64,`+encoded+`","filename":"a.png"}`,
		`{"type":"binary","mimeType":"image/png","data":"`+encoded+`","filename":"b.png"}`,
		`{"type":"document","source":{"type":"url","value":"data:,a%20b"}}`,
		urlPart("https://example.com/a.png"),
	).mustStatus(t, "run", http.StatusOK)
	snap, err := n.snapshots.Latest(n.ctx(), thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	parts := snap.Entries[0].Message.Content.Parts()
	for i, p := range parts[:4] {
		if p.Source.Type != agui.SourceURL || p.Source.MimeType != "image/png" {
			t.Fatalf("source %d = %.100v, want the URL of a PNG", i, p.Source)
		}
		wantEqual(t, "moved bytes", n.do(http.MethodGet, p.Source.Value, "", ann...).body, string(png))
	}
	wantEqual(t, "small data", fmt.Sprint(parts[4].Source.Type, parts[4].Source.Value, parts[4].Source.MimeType), "dataYSBitext/plain")
	wantEqual(t, "another URL", parts[5].Source.Value, "https://example.com/a.png")
	wantEqual(t, "files", len(n.index.OfThread(thread)), 3) // the first two have the same bytes and no name
}

// TestFilesOfMessages: an input refers only to files that its caller may read, and who may read the
// thread reads them too. They are deleted with the thread.
func TestFilesOfMessages(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withThreadList(t))
	n.answerRuns()
	ann, bob := headersOf("ann"), headersOf("bob")
	f := n.upload("a.png", "", "\x89PNG\r\n\x1a\n", ann...)
	refer := func(url string) agui.Message {
		return imageMessage("u1", agui.PartSource{Type: agui.SourceURL, Value: url})
	}
	foreign := n.upload("b.png", "", "\x89PNG\r\n\x1a\nother", bob...)
	for _, url := range []string{"/v1/files/file_none", "/v1/files/../agents", foreign.URL} {
		a := n.send("r0", ann, refer(url))
		if a.status != http.StatusNotFound && a.status != http.StatusForbidden || a.problem.Pointer != "/messages/0/content/1/source/value" {
			t.Errorf("input with %s: got %d, pointer %q", url, a.status, a.problem.Pointer)
		}
	}
	n.send("r1", ann, refer(f.URL)).mustStatus(t, "run", http.StatusOK)
	n.do(http.MethodGet, f.URL, "", bob...).wantStatus(t, "before the share", http.StatusForbidden)
	n.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":[{"subject":"bob","access":"read"}]}`, ann...).mustStatus(t, "share", http.StatusOK)
	n.do(http.MethodGet, f.URL, "", bob...).wantStatus(t, "after the share", http.StatusOK)
	a := n.do(http.MethodGet, f.URL+"/metadata", "", ann...)
	if strings.Contains(a.body, "expiresAt") {
		t.Errorf("metadata of a file of a thread = %s, want no expiresAt", a.body)
	}
	n.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", `{"threadId":"fork"}`, ann...).mustStatus(t, "fork", http.StatusCreated)
	for _, thread := range []string{"t", "fork"} {
		n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "before the deletion of "+thread, http.StatusOK)
		for len(n.index.OfThread(stream.Thread{Tenant: "alpha", ID: thread})) == 0 {
			<-n.index.Changed()
		}
		n.deleteThread(thread, ann)
	}
	n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "after both", http.StatusNotFound)
}

// TestForkWithoutFilesDoesNotBegin: a fork begins after it has its files. One that cannot have them does not begin,
// also if it is requested again, and if an input requests it.
func TestForkWithoutFilesDoesNotBegin(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	n.answerRuns()
	ann := headersOf("ann")
	f := n.upload("a.png", "", "\x89PNG\r\n\x1a\n", ann...)
	n.send("r1", ann, imageMessage("u1", agui.PartSource{Type: agui.SourceURL, Value: f.URL})).mustStatus(t, "run", http.StatusOK)
	for i := range 999 { // with t, the most threads of a file
		if err := n.store.Attach(n.ctx(), "alpha", f.ID, fmt.Sprint("other", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		a := n.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", `{"threadId":"fork"}`, ann...)
		wantEqual(t, "code of the fork", a.problem.Code, "too_many_references")
		input := `{"threadId":"fork","runId":"r2","parentRunId":"r1","forwardedProps":{"perdure":{"parentThreadId":"t"}},"messages":[{"id":"u2","role":"user","content":"Hi"}],"tools":[],"context":[],"state":{}}`
		a = n.do(http.MethodPost, "/v1/agents/a/runs", input, ann...)
		wantEqual(t, "code of an input that forks", a.problem.Code, "too_many_references")
	}
	n.do(http.MethodGet, "/v1/threads/fork/messages", "", ann...).wantStatus(t, "messages of the fork", http.StatusNotFound)
}

// TestInputRenewsOldReference: a sweep does not take a file from an input whose thread had an older
// reference to it, from an input that was refused for instance.
func TestInputRenewsOldReference(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	n.answerRuns()
	ann := headersOf("ann")
	f := n.upload("a.png", "", "\x89PNG\r\n\x1a\n", ann...)
	if err := n.store.Attach(n.ctx(), "alpha", f.ID, "t"); err != nil {
		t.Fatal(err)
	}
	n.ageReferences(f.ID, 3*time.Hour)
	n.send("r1", ann, imageMessage("u1", agui.PartSource{Type: agui.SourceURL, Value: f.URL})).mustStatus(t, "run", http.StatusOK)
	found, err := n.store.Find(n.ctx(), "alpha", f.ID)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(found.Threads["t"]); age > time.Hour {
		t.Errorf("the reference is %s old, want a new one", age)
	}
}

// TestInterruptedDeletionKeepsFilesOfNewThread: a deletion that died after it had removed the records, and
// that is completed when its ID begins another thread, leaves the files of that thread: before the thread's
// first record, and after it.
func TestInterruptedDeletionKeepsFilesOfNewThread(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	n.answerRuns()
	answerRun, ann, thread := n.temporal.start, headersOf("ann"), stream.Thread{Tenant: "alpha", ID: "t"}
	n.send("r1", ann, userMessage("u1", "go")).mustStatus(t, "run", http.StatusOK)
	last, err := n.log.LastOf(n.ctx(), thread)
	if err == nil {
		err = n.snapshots.Purge(n.ctx(), thread)
	}
	if err != nil {
		t.Fatal(err)
	}
	complete := func() error {
		n.awaitIndex(func(x *files.Index) bool { return len(x.OfThread(thread)) == 1 })
		// What a process leaves that is killed before it lists the end of the purge.
		left := fmt.Sprintf(`{"threadId":"t","seq":%d,"purged":true,"unfinished":true}`, last)
		if _, err := n.log.Index().PutString(n.ctx(), stream.IndexPrefix+"alpha.t", left); err != nil {
			return err
		}
		return n.server.Deletion().Finish(n.ctx(), thread)
	}
	f := n.upload("a.png", "", "\x89PNG\r\n\x1a\n", ann...)
	if err = n.store.Attach(n.ctx(), "alpha", f.ID, "t"); err == nil {
		err = complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.temporal.start = func(in runs.Input) error { // the input is the first record
		if err := complete(); err != nil {
			return err
		}
		return answerRun(in)
	}
	n.send("r2", ann, imageMessage("u2", agui.PartSource{Type: agui.SourceURL, Value: f.URL})).mustStatus(t, "run in a new thread", http.StatusOK)
	found, err := n.store.Find(n.ctx(), "alpha", f.ID)
	if err != nil || !found.IsOf("t") {
		t.Errorf("file of the new thread = %+v (%v), want that the thread refers to it", found, err)
	}
}

// ageReferences makes the references to a file older.
func (n *fileNode) ageReferences(id string, by time.Duration) {
	n.t.Helper()
	bucket, err := n.log.KeyValue(n.ctx(), jetstream.KeyValueConfig{Bucket: "files", Storage: jetstream.FileStorage, LimitMarkerTTL: time.Minute})
	if err != nil {
		n.t.Fatal(err)
	}
	key := "file." + stream.KeyToken("alpha") + "." + id
	entry, err := bucket.Get(n.ctx(), key)
	if err != nil {
		n.t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(entry.Value(), &stored); err != nil {
		n.t.Fatal(err)
	}
	threads := stored["threads"].(map[string]any)
	for thread := range threads {
		threads[thread] = time.Now().UTC().Add(-by)
	}
	value, err := json.Marshal(stored)
	if err == nil {
		_, err = bucket.Put(n.ctx(), key, value)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// deleteThread deletes a thread without a workflow.
func (n *fileNode) deleteThread(thread string, caller []string) {
	n.t.Helper()
	n.temporal.stop = func(string) error { return serviceerror.NewNotFound("closed") }
	n.do(http.MethodDelete, "/v1/threads/"+thread, "", caller...).mustStatus(n.t, "delete "+thread, http.StatusNoContent)
}

// TestFilesAreAudited: the audit log has uploads and deletions.
func TestFilesAreAudited(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withAudit(t))
	ann := headersOf("ann", policy.DefaultRoles.TenantAdmin)
	f := n.upload("a", "", "text", ann...)
	n.do(http.MethodDelete, f.URL, "", ann...).wantStatus(t, "deletion", http.StatusNoContent)
	var got []audit.Action
	for _, e := range n.entries("", ann) {
		if e.Details["file"] == f.ID {
			got = append(got, e.Action)
		}
	}
	wantEqual(t, "actions", fmt.Sprint(got), fmt.Sprint([]audit.Action{audit.UploadFile, audit.DeleteFile}))
}

// TestHoldKeepsFiles: the files of a thread with a legal hold cannot be deleted.
func TestHoldKeepsFiles(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withAudit(t))
	n.answerRuns()
	ann := headersOf("ann", policy.DefaultRoles.TenantAdmin)
	f := n.upload("a.png", "", "\x89PNG\r\n\x1a\n", ann...)
	n.send("r1", ann, imageMessage("u1", agui.PartSource{Type: agui.SourceURL, Value: f.URL})).mustStatus(t, "run", http.StatusOK)
	n.do(http.MethodPut, "/v1/threads/t/hold", `{"reason":"case 7"}`, ann...).mustStatus(t, "hold", http.StatusOK)
	a := n.do(http.MethodDelete, f.URL, "", ann...)
	a.wantStatus(t, "deletion during the hold", http.StatusConflict)
	wantEqual(t, "code", a.problem.Code, "legal_hold")
	n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "file during the hold", http.StatusOK)
	n.do(http.MethodDelete, "/v1/threads/t/hold", "", ann...).mustStatus(t, "release", http.StatusNoContent)
	n.do(http.MethodDelete, f.URL, "", ann...).wantStatus(t, "deletion afterwards", http.StatusNoContent)
}

// TestFilesOfSubject: an export lists the files of a subject, and a deletion removes those to which no
// thread refers.
func TestFilesOfSubject(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withThreadList(t))
	ann, boss := headersOf("ann"), headersOf("boss", policy.DefaultRoles.TenantAdmin)
	f, upload := n.upload("a.txt", "", "text", ann...), n.createUpload(10, ann)
	n.awaitIndex(func(x *files.Index) bool {
		return len(x.List("alpha", "ann", "")) == 1 && len(x.Uploads("alpha", "ann")) == 1
	})
	a := n.do(http.MethodGet, "/v1/subjects/ann/export", "", ann...)
	if !strings.Contains(a.body, `"kind":"file"`) || !strings.Contains(a.body, `"name":"a.txt"`) {
		t.Errorf("export = %s, want the file", a.body)
	}
	a = n.do(http.MethodDelete, "/v1/subjects/ann", "", boss...)
	if !strings.Contains(a.body, `"files":["`+f.ID+`"]`) {
		t.Errorf("report = %s, want the file", a.body)
	}
	n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "after the deletion", http.StatusNotFound)
	status, _ := n.head(upload, ann)
	wantEqual(t, "status of the upload after the deletion", status, http.StatusNotFound)
	if !strings.Contains(a.body, `"uploads":["`+strings.TrimPrefix(upload, files.UploadsPath)+`"]`) {
		t.Errorf("report = %s, want the upload", a.body)
	}
}

// TestDeletionOfSubjectKeepsFilesOfThreads: the report lists the files to which a thread of another owner,
// or one with a legal hold, refers. It leaves out those that are deleted with the threads of the subject.
func TestDeletionOfSubjectKeepsFilesOfThreads(t *testing.T) {
	t.Parallel()
	var cfg api.Config
	n := setupFiles(t, 1<<20, withThreadList(t), withAudit(t), func(c *api.Config) { cfg = *c })
	n.answerRuns()
	n.temporal.stop = func(string) error { return serviceerror.NewNotFound("closed") }
	ann := headersOf("ann")
	uploaded := map[string]string{} // names by ID
	for name, threads := range map[string][]string{"own": {"anns"}, "held": {"anns", "held"}, "contributed": {"anns", "bobs"}} {
		f := n.upload(name, "", "the bytes of "+name, ann...)
		uploaded[f.ID] = name
		for _, thread := range threads {
			if err := n.store.Attach(n.ctx(), "alpha", f.ID, thread); err != nil {
				t.Fatal(err)
			}
		}
	}
	for thread, owner := range map[string]string{"anns": "ann", "held": "ann", "bobs": "bob"} {
		in := inputOf("run-"+thread, "go")
		in.ThreadID = thread
		n.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, in), headersOf(owner)...).mustStatus(t, thread, http.StatusOK)
	}
	n.do(http.MethodPut, "/v1/threads/held/hold", `{"reason":"case 7"}`, admin...).mustStatus(t, "hold", http.StatusOK)
	n.awaitIndex(func(x *files.Index) bool {
		return len(x.OfThread(stream.Thread{Tenant: "alpha", ID: "anns"})) == 3 && len(x.OfThread(stream.Thread{Tenant: "alpha", ID: "held"})) == 1 &&
			len(x.OfThread(stream.Thread{Tenant: "alpha", ID: "bobs"})) == 1
	})
	for changed := cfg.Threads.Changed(); ; changed = cfg.Threads.Changed() {
		if all, active, _ := cfg.Threads.Counts("alpha"); all == 3 && active == 0 {
			break
		}
		<-changed
	}
	for _, query := range []string{"?dryRun=true", ""} {
		a := n.do(http.MethodDelete, "/v1/subjects/ann"+query, "", admin...)
		a.mustStatus(t, "deletion of ann", http.StatusOK)
		var r subjectReport
		if err := json.Unmarshal([]byte(a.body), &r); err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, k := range r.Kept {
			if k.Kind == "file" && k.Reason != "" {
				kept = append(kept, uploaded[k.ID])
			}
		}
		slices.Sort(kept)
		wantEqual(t, "files that stay, with "+query, fmt.Sprint(kept), "[contributed held]")
	}
	for id, name := range uploaded {
		_, err := n.store.Find(n.ctx(), "alpha", id)
		wantEqual(t, name+" is deleted", errors.Is(err, files.ErrUnknown), name == "own")
	}
}

// TestScheduleRefersToNoFile: a schedule with the URL of a file is refused.
func TestScheduleRefersToNoFile(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	ann := headersOf("ann")
	f := n.upload("a.txt", "", "text", ann...)
	message, err := json.Marshal(imageMessage("u1", agui.PartSource{Type: agui.SourceURL, Value: f.URL}))
	if err != nil {
		t.Fatal(err)
	}
	message = bytes.Replace(message, []byte(`"id":"u1",`), nil, 1) // messages of schedules have no IDs
	a := n.do(http.MethodPost, "/v1/schedules", `{"agent":"a","intervals":[{"every":"1h"}],"input":{"messages":[`+string(message)+`]}}`, ann...)
	a.wantStatus(t, "schedule", http.StatusBadRequest)
	wantEqual(t, "pointer", a.problem.Pointer, "/input/messages/0/content/1/source/value")
}

// TestRetentionSweepsFiles: a round of the retention deletes files to which no thread refers.
func TestRetentionSweepsFiles(t *testing.T) {
	t.Parallel()
	var cfg api.Config
	n := setupFiles(t, 1<<20, withThreadList(t), withAudit(t), func(c *api.Config) { cfg = *c })
	ann := headersOf("ann")
	f := n.upload("a.txt", "", "text", ann...)
	n.awaitBytes(4)
	rules, err := retention.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	remover := retention.New(retention.Config{
		Rules: rules, Log: n.log, Index: cfg.Threads, Delete: n.server.Deletion(), Holds: cfg.Audit.Holds, Writer: cfg.Audit.Writer, Logger: slog.New(slog.DiscardHandler),
		Files: n.store, FileIndex: n.index,
	})
	if _, err := remover.Round(n.ctx(), time.Now()); err != nil {
		t.Fatal(err)
	}
	n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "after the first round", http.StatusOK)
	if _, err := remover.Round(n.ctx(), time.Now().Add(files.Lifetime+time.Minute)); err != nil {
		t.Fatal(err)
	}
	n.do(http.MethodGet, f.URL, "", ann...).wantStatus(t, "after its lifetime", http.StatusNotFound)
}

// TestDataOfSteeringIsMoved: base64 data of a message that steers a run becomes a file of the thread.
func TestDataOfSteeringIsMoved(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	begun := make(chan struct{})
	n.temporal.start = func(in runs.Input) error { n.begin(in, "e1"); close(begun); return nil }
	n.temporal.steer = func(runs.SteerRequest) (runs.SteerResult, error) { return runs.SteerResult{}, nil }
	ann := headersOf("ann")
	body, err := json.Marshal(agui.RunAgentInput{ThreadID: "t", RunID: "r1", ProtocolVersion: "1.0", Messages: []agui.Message{{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("begin")}}})
	if err != nil {
		t.Fatal(err)
	}
	streaming, leave := context.WithCancel(n.ctx())
	defer leave()
	req, err := http.NewRequestWithContext(streaming, http.MethodPost, n.http.URL+"/v1/agents/a/runs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(ann); i += 2 {
		req.Header.Set(ann[i], ann[i+1])
	}
	resp, err := n.http.Client().Do(req) // the stream of the active run
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-begun
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 20<<10)...)
	message, err := json.Marshal(map[string]any{"message": imageMessage("u2", agui.PartSource{Type: agui.SourceData, Value: base64.StdEncoding.EncodeToString(png), MimeType: "image/png"})})
	if err != nil {
		t.Fatal(err)
	}
	a := n.do(http.MethodPost, "/v1/threads/t/messages", `{"message":{"id":"u2","role":"user","content":[{"type":"image","source":{"type":"url","value":"data:"}}]}}`, ann...)
	wantEqual(t, "malformed URL", fmt.Sprint(a.status, a.problem.Pointer), "400/message/content/0/source/value")
	for range 2 { // the same message again has the same file
		n.do(http.MethodPost, "/v1/threads/t/messages", string(message), ann...).mustStatus(t, "steering", http.StatusAccepted)
	}
	n.awaitBytes(int64(len(png)))
	ids := n.index.OfThread(stream.Thread{Tenant: "alpha", ID: "t"})
	wantEqual(t, "files of the thread", len(ids), 1)
	n.do(http.MethodGet, files.Path+ids[0], "", ann...).wantStatus(t, "the file", http.StatusOK)
}
