package operations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/e2e/kit"
)

// uploadScript is the input of tus.mjs.
type uploadScript struct {
	Endpoint string            `json:"endpoint"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
	Metadata map[string]string `json:"metadata"`
	Stops    []int64           `json:"stops"`
}

// asAnn and asBob are headers that name a caller.
var (
	asAnn = []string{"X-Forwarded-User", "ann"}
	asBob = []string{"X-Forwarded-User", "bob"}
)

// TestUploadSurvivesKills: tus-js-client uploads a file while the process is killed twice. It sends only
// the part again that was arriving. The file has all bytes and exists once. Nothing is left of the parts,
// no file of the data directory has content, and another caller does not see the upload.
func TestUploadSurvivesKills(t *testing.T) {
	t.Parallel()
	if err := kit.Install(filepath.Join("node", "tus")); err != nil {
		t.Fatal(err)
	}
	const part = 8 << 20
	p := startEncrypted(t, firstKey)
	p.Addr = strings.TrimPrefix(p.URL(""), "http://") // it restarts there
	content := numberedLines(3*part + 17)
	path := filepath.Join(t.TempDir(), "large.txt")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	client := kit.StartNode(t, "tus", "tus.mjs", uploadScript{
		Endpoint: p.URL("/v1/uploads"), Path: path, Headers: map[string]string{asAnn[0]: asAnn[1]},
		Metadata: map[string]string{"filename": kit.Marked("large.txt"), "filetype": "text/plain"}, Stops: []int64{part + 5<<20, 2*part + 3<<20},
	})
	for n := range 2 {
		client.Until(t, "STOPPED", 1)
		upload := p.awaitOffset(t, asAnn, int64(n+1)*part)
		kit.WantNoContent(t, "while the upload arrives", p.data)
		resp := p.RequestAs(t, "", http.MethodHead, upload, nil, asBob...)
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("upload as another caller: got %d, want %d", resp.StatusCode, http.StatusNotFound)
		}
		p.Restart(t)
	}
	client.Finish(t)
	var offsets []int64
	for _, e := range client.Events(0, "PATCH") {
		var patch struct{ Offset int64 }
		if err := json.Unmarshal(e, &patch); err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, patch.Offset)
	}
	if want := []int64{0, part, 2 * part}; fmt.Sprint(offsets) != fmt.Sprint(want) {
		t.Errorf("requests began at %d, want %d", offsets, want)
	}
	var uploaded struct{ File string }
	if err := json.Unmarshal(client.Events(0, "UPLOADED")[0], &uploaded); err != nil {
		t.Fatal(err)
	}
	resp := p.RequestAs(t, "", http.MethodGet, uploaded.File, nil, asAnn...)
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file has %d bytes (%v), want the %d bytes of the upload", len(got), err, len(content))
	}
	kit.WantNoContent(t, "after the upload", p.data)
	var list struct{ Items []uploadedFile }
	if err := json.NewDecoder(p.RequestAs(t, "", http.MethodGet, "/v1/files", nil, asAnn...).Body).Decode(&list); err != nil || len(list.Items) != 1 || list.Items[0].URL != uploaded.File {
		t.Errorf("files = %+v (%v), want the file once", list.Items, err)
	}
	if resp := p.RequestAs(t, "", http.MethodDelete, uploaded.File, nil, asAnn...); resp.StatusCode != http.StatusNoContent {
		t.Errorf("deletion of the file: got %d", resp.StatusCode)
	}
	if n := p.chunks(t); n != 0 {
		t.Errorf("messages with bytes of files = %d after the deletion of the only file, want none", n)
	}
}

// numberedLines returns n bytes of lines that are content of a test, each with its number.
func numberedLines(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintln(&b, kit.Mark, i)
	}
	return b.Bytes()[:n]
}

// streams returns a connection to NATS's streams.
func (p *encryptedPerdure) streams(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(p.Addrs.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// chunks returns the number of messages with bytes of files.
func (p *encryptedPerdure) chunks(t *testing.T) uint64 {
	t.Helper()
	stream, err := p.streams(t).Stream(t.Context(), "PERDURE_files")
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// awaitOffset waits until the only upload of a caller has a number of bytes, and returns its URL.
func (p *encryptedPerdure) awaitOffset(t *testing.T, caller []string, want int64) (upload string) {
	t.Helper()
	bucket, err := p.streams(t).KeyValue(t.Context(), "PERDURE_files")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := bucket.Watch(t.Context(), "file.>") // files, uploads and reservations
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = changes.Stop() }()
	limit := time.After(kit.WaitTimeout)
	for {
		select {
		case change := <-changes.Updates():
			if change == nil || !strings.Contains(change.Key(), ".upload_") {
				continue
			}
			upload = "/v1/uploads/" + change.Key()[strings.LastIndexByte(change.Key(), '.')+1:]
			resp := p.RequestAs(t, "", http.MethodHead, upload, nil, caller...)
			if offset, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64); err == nil && offset >= want {
				return upload
			}
		case <-limit:
			t.Fatalf("the upload does not reach %d bytes", want)
		}
	}
}

// gatedProxy forwards requests to an API, but only some bytes of the first PATCH.
type gatedProxy struct {
	*httptest.Server

	held    chan struct{} // closed when these bytes have passed
	release chan struct{} // closed to break this request off

	mu      sync.Mutex
	offsets []string // of the PATCH requests
}

// startGatedProxy starts a proxy that passes limit bytes.
func startGatedProxy(t *testing.T, to string, limit int64) *gatedProxy {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	g := &gatedProxy{held: make(chan struct{}), release: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			g.mu.Lock()
			g.offsets = append(g.offsets, r.Header.Get("Upload-Offset"))
			if len(g.offsets) == 1 {
				r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, limit), g))
			}
			g.mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

// Read implements io.Reader. It is the end of the first PATCH.
func (g *gatedProxy) Read([]byte) (int, error) {
	close(g.held)
	<-g.release
	return 0, io.ErrUnexpectedEOF
}

// TestFilePutSurvivesKill: "perdure file put" continues an upload of a large file after a kill of the
// process.
func TestFilePutSurvivesKill(t *testing.T) {
	t.Parallel()
	const part = 8 << 20
	p := startEncrypted(t, firstKey)
	p.Addr = strings.TrimPrefix(p.URL(""), "http://")
	proxy := startGatedProxy(t, p.URL(""), part+3<<20)
	content := numberedLines(2*part + 17)
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "large.txt"), filepath.Join(dir, "copy")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	put := p.StartCommand(t, "file", "put", path, "--json", "--url", proxy.URL)
	select {
	case <-proxy.held:
	case <-time.After(kit.WaitTimeout):
		t.Fatal("the command does not send the file")
	}
	p.awaitOffset(t, nil, part)
	p.Kill()
	close(proxy.release)
	p.Start(t)
	var f uploadedFile
	if out := put.Finish(t, 0); json.Unmarshal([]byte(out), &f) != nil || f.ID == "" {
		t.Fatalf("file put = %s, want a file", out)
	}
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	if want := fmt.Sprint([]int{0, part}); fmt.Sprint(proxy.offsets) != want {
		t.Errorf("requests began at %s, want %s", proxy.offsets, want)
	}
	p.StartCommand(t, "file", "get", f.ID, "--output", copied).Finish(t, 0)
	if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file has %d bytes (%v), want %d", len(got), err, len(content))
	}
}
