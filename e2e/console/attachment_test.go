package console

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// attachedFiles selects the files that a message refers to.
const attachedFiles = "[aria-label='Attached files']"

// transfer dispatches an event that gives an element a file.
const transfer = `{
	const data = new DataTransfer();
	data.items.add(new File([Uint8Array.from(atob(%q), (byte) => byte.charCodeAt(0))], %q, { type: "image/png" }));
	const target = document.querySelector(%q);
	const options = { bubbles: true, cancelable: true };
	%s
}`

// testAttachments: a person pastes an image and drops another one, removes one of them, and sends
// the rest. A file that is too large is refused by name.
func testAttachments(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/echo"), "Failed to load resource")
	tab.Await(message, "")
	picture, err := os.ReadFile(pixelFile(t))
	if err != nil {
		t.Fatal(err)
	}
	pixel := base64.StdEncoding.EncodeToString(picture)
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "pasted.png", message, `target.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: data }));`), nil)
	tab.Await(attachedFiles, "pasted.png")
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "dropped.png", "form[aria-label='New message']", `target.dispatchEvent(new DragEvent("dragover", { ...options, dataTransfer: data }));`), nil)
	tab.Await("[data-dropping]", "")
	tab.WantAccessible()
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "dropped.png", "form[aria-label='New message']", `target.dispatchEvent(new DragEvent("drop", { ...options, dataTransfer: data }));`), nil)
	tab.Await(attachedFiles, "dropped.png")
	tab.AwaitGone("[data-dropping]")

	tab.Evaluate(`{
		const data = new DataTransfer();
		data.items.add(new File([new Uint8Array(105_000_000)], "large.bin"));
		document.querySelector("`+message+`").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
	}`, nil)
	tab.Await("[role=alert]", "large.bin is too large")
	tab.Click("role=button[name='Remove pasted.png']")
	say(tab, "Look at this")
	tab.Await(transcript+" img[alt='dropped.png']", "")
	tab.Await("[data-kind=text]", "I see it.")
	tab.AwaitGone(attachedFiles)
	tab.AwaitGone(transcript + " img[alt='pasted.png']")
}

// countAddresses counts the addresses of blobs in the page, in an attribute of the document.
const countAddresses = `{
	const addresses = new Set();
	const { createObjectURL, revokeObjectURL } = URL;
	const count = () => { document.documentElement.dataset.addresses = addresses.size; };
	URL.createObjectURL = (blob) => { const address = createObjectURL.call(URL, blob); addresses.add(address); count(); return address; };
	URL.revokeObjectURL = (address) => { revokeObjectURL.call(URL, address); addresses.delete(address); count(); };
}`

// testPreviews: a page keeps no images of attachments that were not sent, when a person leaves the chat.
func testPreviews(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/echo"))
	tab.Await(message, "")
	tab.Evaluate(countAddresses, nil)
	tab.Choose("input[type=file]", pixelFile(t))
	tab.Await(attachedFiles+" img", "")
	tab.Await("[data-addresses='1']", "")
	tab.Click("role=link[name='Schedules']")
	tab.AwaitGone(message)
	tab.Await("[data-addresses='0']", "")
}

// cutProxy forwards requests to an API. The connection of the second PATCH breaks when some of its bytes
// have arrived.
type cutProxy struct {
	*httptest.Server

	release chan struct{} // closed to break the connection
	deleted chan struct{} // receives a value after each DELETE
	patches atomic.Int64
	bytes   atomic.Int64 // in the bodies of the PATCH requests
}

// startCutProxy starts a proxy that passes limit bytes of the second PATCH.
func startCutProxy(t *testing.T, to string, limit int64) *cutProxy {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &cutProxy{release: make(chan struct{}), deleted: make(chan struct{}, 1)}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the page has this origin
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			body := io.Reader(r.Body)
			if p.patches.Add(1) == 2 {
				body = io.MultiReader(io.LimitReader(body, limit), p)
			}
			r.Body = io.NopCloser(io.TeeReader(body, counter{&p.bytes}))
		}
		forward.ServeHTTP(w, r)
		if r.Method == http.MethodDelete {
			p.deleted <- struct{}{}
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// Read implements io.Reader. It is the end of the body whose connection breaks.
func (p *cutProxy) Read([]byte) (int, error) {
	<-p.release
	return 0, io.ErrUnexpectedEOF
}

// counter is an io.Writer that counts bytes.
type counter struct{ n *atomic.Int64 }

// Write implements io.Writer.
func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// attachLarge attaches a file, and waits until the page shows that the server has a part of it.
func attachLarge(t *testing.T, p *kit.Perdure, content []byte) (*cutProxy, *kit.Tab) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.txt")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := startCutProxy(t, p.URL(""), 1<<20)
	tab := kit.OpenTab(t, proxy.URL+"/console/chat/echo", "Failed to load resource")
	tab.Await(message, "")
	tab.Choose("input[type=file]", path)
	tab.Await(attachedFiles, "4.2 MB of 12.6 MB")
	return proxy, tab
}

// testStoppedAttachment: a person stops an upload. The server deletes it, and the message can be sent
// without it.
func testStoppedAttachment(t *testing.T, p *kit.Perdure) {
	proxy, tab := attachLarge(t, p, make([]byte, 12<<20))
	defer close(proxy.release)
	tab.Click("role=button[name='Stop the upload']")
	tab.AwaitGone(attachedFiles)
	select {
	case <-proxy.deleted:
	case <-time.After(kit.WaitTimeout):
		t.Error("the page has not deleted the upload")
	}
	tab.AwaitGone("main [role=alert]")
	say(tab, "Look at this")
	tab.Await("[data-kind=text]", "I see it.")
}

// testLargeAttachment: a person attaches a file of 12 MiB. The page shows how much has arrived, and
// continues the upload when its connection breaks. The file has all bytes, and none was sent twice
// except for those of one part.
func testLargeAttachment(t *testing.T, p *kit.Perdure) {
	const part = 4 << 20
	content := bytes.Repeat([]byte("All work and no play.\n"), 12<<20/22)
	proxy, tab := attachLarge(t, p, content)
	tab.Await(attachedFiles+" progress[aria-label='Uploaded']", "")
	tab.WantAccessible()
	close(proxy.release)
	tab.Await(attachedFiles+" button[aria-label='Remove large.txt']", "")
	tab.AwaitGone(attachedFiles + " progress")
	say(tab, "Look at this")
	tab.Await("[data-kind=text]", "I see it.")

	var list struct {
		Items []struct{ URL, Name string }
	}
	p.GetJSON(t, "/v1/files", &list)
	var found [][]byte
	for _, f := range list.Items {
		if f.Name == "large.txt" {
			stored, err := io.ReadAll(p.RequestAs(t, "", http.MethodGet, f.URL, nil).Body)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, stored)
		}
	}
	if len(found) != 1 || !bytes.Equal(found[0], content) {
		t.Errorf("found %d files, want the file with its %d bytes", len(found), len(content))
	}
	if got, most := proxy.bytes.Load(), int64(len(content)+part); got > most {
		t.Errorf("the requests had %d bytes, want at most %d", got, most)
	}
}
