package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
)

// TestLargeUploadContinues: after a lost connection, a server that is unavailable and a conflict, an
// upload continues at the offset of the server.
func TestLargeUploadContinues(t *testing.T) {
	t.Parallel()
	const size = 8<<20 + 100
	content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
	var got []byte
	wantRequest := func(r *http.Request, want string) {
		if have := r.Method + " " + r.URL.Path + " " + r.Header.Get("Upload-Offset") + " " + r.Header.Get("Tus-Resumable") + " " + r.Header.Get("Authorization"); have != want+" 1.0.0 Bearer secret" {
			t.Errorf("request = %q, want %q", have, want)
		}
	}
	head := func(w http.ResponseWriter, r *http.Request) {
		wantRequest(r, "HEAD /v1/uploads/upload_a ")
		w.Header().Set("Upload-Offset", fmt.Sprint(len(got)))
	}
	s := serve(t,
		func(w http.ResponseWriter, r *http.Request) {
			wantRequest(r, "POST /v1/uploads ")
			if l, m := r.Header.Get("Upload-Length"), r.Header.Get("Upload-Metadata"); l != fmt.Sprint(size) || m != "filename YS50eHQ=,filetype dGV4dC9wbGFpbg==" {
				t.Errorf("length = %s, metadata = %s, want those of the file", l, m)
			}
			w.Header().Set("Location", "/v1/uploads/upload_a")
			w.WriteHeader(http.StatusCreated)
		},
		func(_ http.ResponseWriter, r *http.Request) {
			wantRequest(r, "PATCH /v1/uploads/upload_a 0")
			got, _ = io.ReadAll(io.LimitReader(r.Body, 5<<20))
			panic(http.ErrAbortHandler) // the connection breaks
		},
		refusal(http.StatusServiceUnavailable, "unavailable", ""),
		head,
		func(w http.ResponseWriter, r *http.Request) {
			wantRequest(r, "PATCH /v1/uploads/upload_a 5242880")
			refusal(http.StatusConflict, "upload_changed", "")(w, r)
		},
		head,
		func(w http.ResponseWriter, r *http.Request) {
			wantRequest(r, "PATCH /v1/uploads/upload_a 5242880")
			rest, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = append(got, rest...)
			w.Header().Set("Upload-Offset", fmt.Sprint(len(got)))
			w.Header().Set("Upload-File", "/v1/files/file_a")
			w.WriteHeader(http.StatusNoContent)
		},
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/files/file_a/metadata" {
				t.Errorf("path = %s, want that of the file", r.URL.Path)
			}
			fmt.Fprint(w, `{"id":"file_a","url":"/v1/files/file_a"}`)
		})
	f, err := s.client(t, client.Config{Token: "secret"}).UploadFile(t.Context(), client.Upload{Name: "a.txt", Type: "text/plain", Body: bytes.NewReader(content), Size: size})
	if err != nil || f.Value.ID != "file_a" || !bytes.Equal(got, content) {
		t.Errorf("upload = %+v, %v, with %d bytes, want file_a with %d", f.Value, err, len(got), size)
	}
}

// TestUploadEndsWithRefusal: a refused upload, and one that makes no progress, are not repeated for ever.
func TestUploadEndsWithRefusal(t *testing.T) {
	t.Parallel()
	u := client.Upload{Body: strings.NewReader(strings.Repeat("x", 9<<20)), Size: 9 << 20}
	s := serve(t, refusal(http.StatusRequestEntityTooLarge, "too_large", ""))
	if _, err := s.client(t, client.Config{}).UploadFile(t.Context(), u); client.Code(err) != "too_large" {
		t.Errorf("upload: got %v, want the code too_large", err)
	}
	stuck := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", "/v1/uploads/upload_a")
		w.Header().Set("Upload-Offset", "0")
	}
	s = serve(t, stuck, stuck)
	if _, err := s.client(t, client.Config{RetryWindow: time.Nanosecond}).UploadFile(t.Context(), u); err == nil || !strings.Contains(err.Error(), "no byte") {
		t.Errorf("upload without progress: got %v, want an error", err)
	}
}

// closer is a body that knows whether it was closed.
type closer struct {
	io.Reader

	isClosed atomic.Bool
}

// Close implements io.Closer.
func (c *closer) Close() error {
	c.isClosed.Store(true)
	return nil
}

// TestUploadReadsFileFromBeginning: a small file is uploaded as a whole, wherever its position is, also after
// a redirect. It stays open, as other bodies do.
func TestUploadReadsFileFromBeginning(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100)
	file, err := os.Create(filepath.Join(t.TempDir(), "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was read
	if _, err := file.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(512, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	take := func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != content || r.URL.Query().Get("name") != "a.txt" {
			t.Errorf("%s has %d bytes, %v, want the %d bytes of a.txt", r.URL, len(got), err, len(content))
		}
		fmt.Fprint(w, `{"id":"file_a"}`)
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/moved"+r.URL.String(), http.StatusTemporaryRedirect)
	}
	body := &closer{Reader: strings.NewReader(content)}
	s := serve(t, take, redirect, take, take)
	c := s.client(t, client.Config{})
	for _, u := range []client.Upload{{Name: "a.txt", Body: file, Size: 1000}, {Name: "a.txt", Body: file, Size: 1000}, {Name: "a.txt", Body: body}} {
		if f, err := c.UploadFile(t.Context(), u); err != nil || f.Value.ID != "file_a" {
			t.Errorf("upload of %T = %+v, %v, want file_a", u.Body, f.Value, err)
		}
	}
	if position, err := file.Seek(0, io.SeekCurrent); position != 512 || err != nil {
		t.Errorf("the file is at %d, %v, want an open file at 512", position, err)
	}
	if body.isClosed.Load() {
		t.Error("the upload has closed the body of its caller")
	}
}
