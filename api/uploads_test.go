package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/files"
)

// tusHeaders returns headers of a request of the tus protocol.
func tusHeaders(caller []string, more ...string) []string {
	return append(append([]string{"Tus-Resumable", "1.0.0"}, caller...), more...)
}

// createUpload begins an upload, and returns its URL.
func (n *fileNode) createUpload(size int, caller []string, more ...string) string {
	n.t.Helper()
	a := n.do(http.MethodPost, "/v1/uploads", "", tusHeaders(caller, append([]string{"Upload-Length", fmt.Sprint(size)}, more...)...)...)
	a.mustStatus(n.t, "create", http.StatusCreated)
	url := a.header.Get("Location")
	if !strings.HasPrefix(url, "/v1/uploads/upload_") {
		n.t.Fatalf("header Location = %q, want the URL of an upload", url)
	}
	return url
}

// sendBytes continues an upload.
func (n *fileNode) sendBytes(url string, offset int, content string, caller []string, more ...string) answer {
	n.t.Helper()
	return n.do(http.MethodPatch, url, content, tusHeaders(caller, append([]string{"Upload-Offset", fmt.Sprint(offset), "Content-Type", "application/offset+octet-stream"}, more...)...)...)
}

// head sends a HEAD request, whose problems have no body.
func (n *fileNode) head(url string, caller []string) (status int, header http.Header) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodHead, n.http.URL+url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; i < len(caller); i += 2 {
		req.Header.Set(caller[i], caller[i+1])
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = resp.Body.Close()
	wantEqual(n.t, "header Tus-Resumable", resp.Header.Get("Tus-Resumable"), "1.0.0")
	return resp.StatusCode, resp.Header
}

func TestResumableUpload(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withAudit(t))
	ann, bob := headersOf("ann", policy.DefaultRoles.TenantAdmin), headersOf("bob")
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("0123456789", 50_000)
	// "cät.png" and "image/gif"
	url := n.createUpload(len(png), ann, "Upload-Metadata", "filename Y8OkdC5wbmc=,filetype aW1hZ2UvZ2lm", "X-Forwarded-Host", "evil.example", "X-HTTP-Method-Override", "OPTIONS")

	a := n.sendBytes(url, 0, png[:1000], ann)
	a.mustStatus(t, "first part", http.StatusNoContent)
	wantEqual(t, "offset", a.header.Get("Upload-Offset"), "1000")
	if at, err := http.ParseTime(a.header.Get("Upload-Expires")); err != nil || time.Until(at) > files.Lifetime || time.Until(at) < files.Lifetime-time.Hour {
		t.Errorf("header Upload-Expires = %q, want a time in a day", a.header.Get("Upload-Expires"))
	}
	wantEqual(t, "file of an incomplete upload", a.header.Get("Upload-File"), "")
	a = n.sendBytes(url, 0, png, ann)
	a.wantStatus(t, "an offset that has passed", http.StatusConflict)
	wantEqual(t, "code", a.problem.Code, "wrong_offset")
	status, header := n.head(url, ann)
	wantEqual(t, "status of HEAD", status, http.StatusOK)
	for name, want := range map[string]string{"Upload-Offset": "1000", "Upload-Length": fmt.Sprint(len(png)), "Cache-Control": "no-store", "Content-Length": ""} {
		wantEqual(t, "header "+name, header.Get(name), want)
	}
	if m := header.Get("Upload-Metadata"); !strings.Contains(m, "filename Y8OkdC5wbmc=") || !strings.Contains(m, "filetype aW1hZ2UvZ2lm") {
		t.Errorf("header Upload-Metadata = %q, want the name and the type", m)
	}

	for name, caller := range map[string][]string{"another caller": bob, "another tenant": {"X-Tenant", "globex", "X-User", "ann"}} {
		status, _ := n.head(url, caller)
		wantEqual(t, "HEAD of "+name, status, http.StatusNotFound)
		a := n.sendBytes(url, 1000, png[1000:], caller)
		wantEqual(t, "PATCH of "+name, a.problem.Code, "unknown_upload")
		n.do(http.MethodDelete, url, "", tusHeaders(caller)...).wantStatus(t, "DELETE of "+name, http.StatusNotFound)
	}

	a = n.sendBytes(url, 1000, png[1000:], ann)
	a.mustStatus(t, "last part", http.StatusNoContent)
	file := a.header.Get("Upload-File")
	status, header = n.head(url, ann)
	wantEqual(t, "status of HEAD afterwards", status, http.StatusOK)
	wantEqual(t, "file of HEAD afterwards", header.Get("Upload-File"), file)
	wantEqual(t, "file of PATCH afterwards", n.sendBytes(url, len(png), "", ann).header.Get("Upload-File"), file)
	a = n.do(http.MethodGet, file, "", ann...)
	a.mustStatus(t, "file", http.StatusOK)
	wantEqual(t, "bytes of the file are those of the upload", a.body == png, true)
	wantEqual(t, "type", a.header.Get("Content-Type"), "image/png")
	wantEqual(t, "name", a.header.Get("Content-Disposition"), "inline; filename*=utf-8''c%C3%A4t.png")
	n.do(http.MethodDelete, url, "", tusHeaders(ann)...).wantStatus(t, "deletion", http.StatusNoContent)
	n.do(http.MethodGet, file, "", ann...).wantStatus(t, "file after the deletion of the upload", http.StatusOK)

	recorded := 0
	for _, e := range n.entries("", ann) {
		if e.Action == audit.UploadFile {
			recorded++
			wantEqual(t, "file of the entry", files.Path+e.Details["file"], file)
		}
	}
	wantEqual(t, "entries of the audit log", recorded, 1)
}

// TestUploadInOneRequest: a request that begins an upload may have all of its bytes.
func TestUploadInOneRequest(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	ann := headersOf("ann")
	a := n.do(http.MethodPost, "/v1/uploads", "text", tusHeaders(ann, "Upload-Length", "4", "Content-Type", "application/offset+octet-stream")...)
	a.mustStatus(t, "create", http.StatusCreated)
	wantEqual(t, "offset", a.header.Get("Upload-Offset"), "4")
	wantEqual(t, "bytes", n.do(http.MethodGet, a.header.Get("Upload-File"), "", ann...).body, "text")
}

// TestBrokenUploadKeepsBytes: what has arrived of a request whose connection breaks is kept.
func TestBrokenUploadKeepsBytes(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	ann := headersOf("ann")
	url := n.createUpload(8, ann)
	n.breakOff(http.MethodPatch, url, append(ann, "Upload-Offset", "0"))
	_, header := n.head(url, ann)
	wantEqual(t, "offset", header.Get("Upload-Offset"), "4")
	a := n.sendBytes(url, 4, "more", ann)
	wantEqual(t, "bytes", n.do(http.MethodGet, a.header.Get("Upload-File"), "", ann...).body, "textmore")
}

// TestBrokenCreationLeavesNothing: an upload whose first request breaks off does not count in the quota,
// because the client has not learned its URL.
func TestBrokenCreationLeavesNothing(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	n.breakOff(http.MethodPost, "/v1/uploads", append(headersOf("ann"), "Upload-Length", "8"))
	n.createUpload(1, headersOf("ann"))
	n.awaitBytes(1)
}

// breakOff sends half of the bytes that a request announces, and closes its side of the connection.
func (n *fileNode) breakOff(method, url string, headers []string) {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.http.Listener.Addr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	var lines strings.Builder
	for i := 0; i < len(headers); i += 2 {
		lines.WriteString(headers[i] + ": " + headers[i+1] + "\r\n")
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: perdure\r\nTus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 8\r\n%s\r\ntext", method, url, lines.String())
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Content-Type") != "application/problem+json" {
		n.t.Errorf("answer = %d %s, want a 503: clients continue after it", resp.StatusCode, body)
	}
}

func TestResumableUploadBounds(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 100<<10, quotasOf(t, "default: {fileBytes: 150000}"))
	ann := headersOf("ann")
	url := n.createUpload(100<<10, ann)
	n.awaitBytes(100 << 10)
	wantRefusal := func(what string, a answer, status int, code string) {
		t.Helper()
		a.wantStatus(t, what, status)
		wantEqual(t, what+": code", a.problem.Code, code)
		wantEqual(t, what+": header Tus-Resumable", a.header.Get("Tus-Resumable"), "1.0.0")
	}
	post := func(header ...string) answer {
		t.Helper()
		return n.do(http.MethodPost, "/v1/uploads", "", append(header, ann...)...)
	}
	a := post("Tus-Resumable", "1.0.0", "Upload-Length", "100000")
	wantRefusal("beyond the quota", a, http.StatusTooManyRequests, "quota_exceeded")
	wantEqual(t, "quota", a.problem.Quota, string(quota.FileBytes))
	a = post("Upload-Length", "1")
	wantRefusal("no version", a, http.StatusPreconditionFailed, "unsupported_tus_version")
	wantEqual(t, "versions", a.header.Get("Tus-Version"), "1.0.0")
	wantRefusal("no length", post("Tus-Resumable", "1.0.0"), http.StatusBadRequest, "invalid_input")
	wantRefusal("length later", post("Tus-Resumable", "1.0.0", "Upload-Defer-Length", "1"), http.StatusBadRequest, "invalid_input")
	wantRefusal("a negative length", post("Tus-Resumable", "1.0.0", "Upload-Length", "-1"), http.StatusBadRequest, "invalid_input")
	wantRefusal("no bytes", post("Tus-Resumable", "1.0.0", "Upload-Length", "0"), http.StatusBadRequest, "empty_file")
	wantRefusal("a large file", post("Tus-Resumable", "1.0.0", "Upload-Length", fmt.Sprint(100<<10+1)), http.StatusRequestEntityTooLarge, "too_large")
	wantRefusal("too many bytes", n.sendBytes(url, 0, strings.Repeat("x", 100<<10+1), ann), http.StatusRequestEntityTooLarge, "too_large")
	wantRefusal("no offset", n.sendBytes(url, 0, "x", ann, "Upload-Offset", ""), http.StatusBadRequest, "invalid_input")
	wantRefusal("another type", n.sendBytes(url, 0, "x", ann, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type")
	wantRefusal("a compressed body", n.sendBytes(url, 0, "x", ann, "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, "unsupported_media_type")
	wantRefusal("an unknown upload", n.sendBytes("/v1/uploads/upload_none", 0, "x", ann), http.StatusNotFound, "unknown_upload")
	wantRefusal("no upload", n.sendBytes("/v1/uploads/..%2Ffiles", 0, "x", ann), http.StatusNotFound, "unknown_upload")
	a = n.do(http.MethodOptions, "/v1/uploads", "", ann...)
	a.wantStatus(t, "OPTIONS", http.StatusNoContent)
	for name, want := range map[string]string{"Tus-Version": "1.0.0", "Tus-Max-Size": fmt.Sprint(100 << 10), "Tus-Extension": "creation,creation-with-upload,expiration,termination"} {
		wantEqual(t, "header "+name, a.header.Get(name), want)
	}
	n.do(http.MethodDelete, url, "", tusHeaders(ann)...).wantStatus(t, "deletion", http.StatusNoContent)
	n.awaitBytes(0)
}

// TestRefusedBytesCompleteNothing: a request with more bytes than its upload lacks leaves the upload as it was,
// whether it announces its length or not.
func TestRefusedBytesCompleteNothing(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20)
	ann := headersOf("ann")
	const announced, chunked = 5, -1
	for name, size := range map[string]int64{"with Content-Length": announced, "chunked": chunked} {
		url := n.createUpload(8, ann)
		n.sendBytes(url, 0, "text", ann).mustStatus(t, "first half", http.StatusNoContent)
		a := n.doWith(http.MethodPatch, url, strings.NewReader("wrong"), size, tusHeaders(ann, "Upload-Offset", "4", "Content-Type", "application/offset+octet-stream")...)
		a.wantStatus(t, name, http.StatusRequestEntityTooLarge)
		_, header := n.head(url, ann)
		wantEqual(t, name+": offset afterwards", header.Get("Upload-Offset"), "4")
		wantEqual(t, name+": file afterwards", header.Get("Upload-File"), "")
		a = n.doWith(http.MethodPatch, url, strings.NewReader("more"), min(size, 4), tusHeaders(ann, "Upload-Offset", "4", "Content-Type", "application/offset+octet-stream")...)
		a.mustStatus(t, name+": the missing bytes", http.StatusNoContent)
		wantEqual(t, name+": bytes", n.do(http.MethodGet, a.header.Get("Upload-File"), "", ann...).body, "textmore")
		n.do(http.MethodDelete, a.header.Get("Upload-File"), "", ann...).mustStatus(t, "deletion", http.StatusNoContent)
		a = n.doWith(http.MethodPost, "/v1/uploads", strings.NewReader("wrong"), size, tusHeaders(ann, "Upload-Length", "4", "Content-Type", "application/offset+octet-stream")...)
		a.wantStatus(t, name+": creation", http.StatusRequestEntityTooLarge)
		n.awaitBytes(0)
	}
}

// threats is a scanner that finds a threat in every file.
type threats struct{}

// Scan implements files.Scanner.
func (threats) Scan(_ context.Context, r io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, r)
	return "Test", err
}

// TestInfectedUpload: the last request of an upload with a threat is refused and recorded as denied, and
// the upload is gone.
func TestInfectedUpload(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, withAudit(t), func(c *api.Config) {
		var err error
		if c.Files.Store, err = files.Open(t.Context(), c.Log, files.Options{Scanner: threats{}}); err != nil {
			t.Fatal(err)
		}
	})
	ann := headersOf("ann", policy.DefaultRoles.TenantAdmin)
	url := n.createUpload(5, ann)
	a := n.sendBytes(url, 0, "virus", ann)
	a.wantStatus(t, "an infected file", http.StatusUnprocessableEntity)
	wantEqual(t, "code", a.problem.Code, "file_infected")
	status, _ := n.head(url, ann)
	wantEqual(t, "status of HEAD afterwards", status, http.StatusNotFound)
	var got []string
	for _, e := range n.entries("", ann) {
		if e.Action != audit.ReadAudit {
			got = append(got, fmt.Sprint(e.Action, " ", e.Outcome))
		}
	}
	wantEqual(t, "entries", fmt.Sprint(got), fmt.Sprint([]string{fmt.Sprint(audit.UploadFile, " ", audit.Denied)}))
}

// TestUploadOfOtherOrigin: pages of allowed origins may send and read the headers of the protocol, and
// others may not upload.
func TestUploadOfOtherOrigin(t *testing.T) {
	t.Parallel()
	n := setupFiles(t, 1<<20, func(c *api.Config) { c.Origins = []string{"https://app.example"} })
	a := n.do(http.MethodOptions, "/v1/uploads/upload_a", "", "Origin", "https://app.example", "Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "tus-resumable,upload-offset")
	a.mustStatus(t, "preflight", http.StatusNoContent)
	wantEqual(t, "PATCH is allowed", strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "PATCH"), true)
	wantEqual(t, "headers are allowed", strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Upload-Offset"), true)
	ann := append(headersOf("ann"), "Upload-Length", "4")
	a = n.do(http.MethodPost, "/v1/uploads", "", tusHeaders(ann, "Origin", "https://app.example")...)
	a.mustStatus(t, "create", http.StatusCreated)
	wantEqual(t, "origins", strings.Join(a.header.Values("Access-Control-Allow-Origin"), " "), "https://app.example")
	wantEqual(t, "headers are shown", strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Location"), true)
	a = n.do(http.MethodPost, "/v1/uploads", "", tusHeaders(ann, "Origin", "https://evil.example")...)
	wantEqual(t, "code for another origin", a.problem.Code, "origin_not_allowed")
}
