package console_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/console"
)

func setup(t *testing.T) *console.Console {
	t.Helper()
	c, err := console.New(console.Settings{Auth: console.AuthToken, Version: "</script><b>"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(c *console.Console, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestPageBehindProxy: files and settings of the page have the path at which a proxy serves the API.
func TestPageBehindProxy(t *testing.T) {
	t.Parallel()
	c, err := console.New(console.Settings{Auth: console.AuthNone, Prefix: `/agents&"`})
	if err != nil {
		t.Fatal(err)
	}
	body := get(c, "/console/threads/t").Body.String()
	if !strings.Contains(body, `src="/agents&amp;&#34;/console/assets/`) || !strings.Contains(body, `"prefix":"/agents\u0026\""`) {
		t.Errorf("the page ignores the prefix:\n%s", body)
	}
}

// TestPage: each path gets the page, with a policy whose nonce is new each time, and with settings
// that cannot end their element.
func TestPage(t *testing.T) {
	t.Parallel()
	c := setup(t)
	nonces := map[string]bool{}
	for _, path := range []string{"/console", "/console/", "/console/index.html", "/console/threads/a%2Fb/runs/c"} {
		w := get(c, path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `src="/console/assets/`) {
			t.Errorf("GET %s: %d\n%s", path, w.Code, w.Body)
		}
		nonce := regexp.MustCompile(`'nonce-([\w-]{22})'`).FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		if nonce == nil || !strings.Contains(w.Body.String(), `nonce="`+nonce[1]+`"`) {
			t.Fatalf("GET %s: policy %q", path, w.Header().Get("Content-Security-Policy"))
		}
		nonces[nonce[1]] = true
		if !strings.Contains(w.Body.String(), `{"auth":"token","version":"\u003c/script\u003e\u003cb\u003e"}`) {
			t.Errorf("GET %s: settings are missing, or not escaped:\n%s", path, w.Body)
		}
	}
	if len(nonces) != 4 {
		t.Errorf("4 pages have %d nonces", len(nonces))
	}
}

// TestFavicon: browsers that request an icon for an answer without one receive that of the page.
func TestFavicon(t *testing.T) {
	t.Parallel()
	c := setup(t)
	icon, want := get(c, console.FaviconPath), get(c, "/console/icon.svg")
	if got := icon.Header().Get("Content-Type"); icon.Code != http.StatusOK || got != "image/svg+xml" || !bytes.Equal(icon.Body.Bytes(), want.Body.Bytes()) {
		t.Errorf("GET %s: %d %s, %d bytes, want the icon of %d bytes", console.FaviconPath, icon.Code, got, icon.Body.Len(), want.Body.Len())
	}
	for path, want := range map[string]bool{console.Path: true, console.Path + "/inbox": true, console.FaviconPath: true, "/consoles": false, "/": false} {
		if got := console.Serves(path); got != want {
			t.Errorf("Serves(%q) = %t, want %t", path, got, want)
		}
	}
}

// TestFiles: files in assets are compressed and cached for ever. A missing one is 404 and not the
// page, which a browser would execute as a script.
func TestFiles(t *testing.T) {
	t.Parallel()
	c := setup(t)
	name := regexp.MustCompile(`/console/assets/index-[^"]+\.js`).FindString(get(c, "/console/").Body.String())
	plain, zipped := get(c, name), get(c, name, "Accept-Encoding", "br, gzip")
	if got := plain.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/javascript") {
		t.Errorf("Content-Type %q", got)
	}
	if got := plain.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("Cache-Control %q", got)
	}
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if _, err := content.ReadFrom(r); err != nil || !bytes.Equal(content.Bytes(), plain.Body.Bytes()) {
		t.Errorf("the compressed file has other content (%v)", err)
	}
	if w := get(c, name, "If-None-Match", plain.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("with the ETag: %d", w.Code)
	}
	if w := get(c, "/console/assets/index-old.js"); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "<html") {
		t.Errorf("a missing file: %d %s", w.Code, w.Body)
	}
}

// TestSize: the manifest of the build names every file, so dist has none of an earlier build. All
// files weigh less than 3 MB, and the first load at most 350 KB with gzip.
func TestSize(t *testing.T) {
	t.Parallel()
	type chunk struct {
		File    string
		CSS     []string
		Assets  []string
		Imports []string
		IsEntry bool
	}
	raw, err := os.ReadFile("dist/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]chunk
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	named := []string{"index.html", "manifest.json", "icon.svg"}
	first := []string{"index.html"}
	var load func(name string)
	load = func(name string) {
		c := manifest[name]
		if slices.Contains(first, c.File) {
			return
		}
		first = append(append(first, c.File), c.CSS...)
		for _, name := range c.Imports {
			load(name)
		}
	}
	for name, c := range manifest {
		named = append(append(append(named, c.File), c.CSS...), c.Assets...)
		if c.IsEntry {
			load(name)
		}
	}
	var total int64
	err = filepath.WalkDir("dist", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		if name := strings.TrimPrefix(filepath.ToSlash(path), "dist/"); !slices.Contains(named, name) {
			t.Errorf("the manifest does not name %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > 3_000_000 {
		t.Errorf("the files have %d bytes", total)
	}
	c, size := setup(t), 0
	for _, name := range first {
		size += get(c, "/console/"+name, "Accept-Encoding", "gzip").Body.Len()
	}
	t.Logf("all files: %d bytes; first load: %d bytes with gzip", total, size)
	if size > 350_000 {
		t.Errorf("the first load has %d bytes", size)
	}
}
