package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed all:dist
var embedded embed.FS

// Path is the path under which the API serves the console, without a slash at its end.
const Path = "/console"

// FaviconPath is the path of the icon that browsers request for answers that name none, such as JSON.
const FaviconPath = "/favicon.ico"

// How the page authenticates its requests.
const (
	AuthNone    = "none"    // nothing to do: the API needs no credentials, or a proxy adds them
	AuthToken   = "token"   // the page asks its user for a token or an API key
	AuthSession = "session" // the user signs in (docs/guides/browser-sessions.md)
)

// Settings are what the page knows before its first request. They are public.
type Settings struct {
	// Auth is AuthNone, AuthToken or AuthSession.
	Auth string `json:"auth"`
	// Version is the version of the API.
	Version string `json:"version"`
	// Prefix is the path of the public URL, such as /agents, behind a proxy that removes it from the
	// paths of requests; "" = there is none. It begins with a slash, and has none at its end.
	Prefix string `json:"prefix,omitempty"`
	// WorkflowURL is the template of URLs in Temporal's UI, with {workflowId}, and TraceURL that of
	// traces, with {runId} and {threadId}. "" = there are no links.
	WorkflowURL string `json:"workflowUrl,omitempty"`
	TraceURL    string `json:"traceUrl,omitempty"`
}

// Console serves the files of the console. It is safe for concurrent use.
type Console struct {
	settings []byte // as JSON without "<", for index.html
	base     []byte // the path of the console for browsers, with a slash at its end, in HTML
	files    map[string]*file
}

// New returns the console.
func New(settings Settings) (*Console, error) {
	encoded, err := json.Marshal(settings) // escapes "<"
	if err != nil {
		return nil, fmt.Errorf("console: settings: %w", err)
	}
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c := &Console{settings: encoded, base: []byte(html.EscapeString(settings.Prefix + Path + "/")), files: map[string]*file{}}
	err = fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		c.files[name] = &file{name: name, dist: dist}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if c.files[indexFile] == nil {
		return nil, fmt.Errorf("console: dist has no %s: run make web", indexFile)
	}
	return c, nil
}

// Serves reports whether the console serves a path.
func Serves(path string) bool {
	return path == Path || strings.HasPrefix(path, Path+"/") || path == FaviconPath
}

// Files of the console that have a path of their own.
const (
	indexFile = "index.html"
	iconFile  = "icon.svg"
)

// policy is the Content-Security-Policy of the page, with a place for its nonce. Libraries of
// the page create style elements with the nonce. Nothing is loaded from another origin, so content
// of a thread cannot send data elsewhere, and no script runs that is not a file of the console.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP serves a file for its name below Path, the icon at FaviconPath, and the page for every
// other path, whose screen the page selects.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	name := strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(r.URL.Path, Path)), "/")
	if r.URL.Path == FaviconPath {
		name = iconFile
	}
	if f := c.files[name]; f != nil && name != indexFile {
		f.serve(w, r)
		return
	}
	if strings.HasPrefix(name, "assets/") {
		header.Set("Cache-Control", "no-store")
		http.Error(w, "This version of the console has no such file. Reload the page.", http.StatusNotFound)
		return
	}
	c.servePage(w)
}

// servePage serves index.html with its nonce and its settings. References become absolute, because the
// page has many paths.
func (c *Console) servePage(w http.ResponseWriter) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	nonce := base64.RawURLEncoding.EncodeToString(random)
	page := bytes.ReplaceAll(c.files[indexFile].content(), []byte(`="./`), slices.Concat([]byte(`="`), c.base))
	page = bytes.ReplaceAll(page, []byte("{{nonce}}"), []byte(nonce))
	page = bytes.Replace(page, []byte("{{settings}}"), c.settings, 1)
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", fmt.Sprintf(policy, nonce))
	header.Set("Cache-Control", "no-store")
	_, _ = w.Write(page)
}

// file is a file of the console. Its content stays in the program until it is served, out of the heap.
type file struct {
	name string
	dist fs.FS

	once sync.Once
	zip  []byte // with gzip; nil = it does not become smaller
	tag  string
}

// content returns a copy of the content.
func (f *file) content() []byte {
	content, _ := fs.ReadFile(f.dist, f.name) // a part of the program, so it is there
	return content
}

// prepare compresses the content on first use.
func (f *file) prepare() {
	f.once.Do(func() {
		content := f.content()
		sum := sha256.Sum256(content)
		f.tag = fmt.Sprintf("%q", base64.RawURLEncoding.EncodeToString(sum[:16]))
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		_, _ = w.Write(content)
		_ = w.Close()
		if zipped.Len() < len(content) {
			f.zip = zipped.Bytes()
		}
	})
}

// serve answers with the content. Vite puts a hash of the content into the names of files in assets, so
// they never change.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	f.prepare()
	header := w.Header()
	header.Set("Content-Type", mime.TypeByExtension(path.Ext(f.name)))
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.tag)
	header.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(f.name, "assets/") {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.zip
	if content != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
	} else {
		content = f.content()
	}
	header.Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write(content)
}
