package certificates_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/certificates"
	"github.com/perdure/perdure/internal/process/certificates/certtest"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// lines is a log that tests read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// await waits for a text in the log.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(20 * filewatch.Interval); l.count(text) == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("the log has no %q", text)
		}
		<-time.After(10 * time.Millisecond) // poll interval
	}
}

// serve serves a stream of two lines over TLS. The second line follows when goOn is closed.
func serve(t *testing.T, files config.TLS, goOn <-chan struct{}) (addr string, log *lines) {
	t.Helper()
	log = &lines{}
	c, err := certificates.Open(files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{TLSConfig: c.Config(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+"\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "end\n")
	})}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		c.Close()
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String(), log
}

// get sends a request over a connection of its own.
func get(t *testing.T, addr string, cfg *tls.Config) (*http.Response, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get("https://" + addr)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

// TestCertificateIsReplacedDuringStream: an open stream continues when the certificate changes, and
// new connections get the new certificate. Files that do not belong together change nothing.
func TestCertificateIsReplacedDuringStream(t *testing.T) {
	t.Parallel()
	authority, dir, goOn := certtest.NewAuthority(t), t.TempDir(), make(chan struct{})
	cert, key := authority.Issue(t, dir, "first")
	addr, log := serve(t, config.TLS{Cert: cert, Key: key}, goOn)
	stream, err := get(t, addr, authority.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	nameOf := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, authority.Client(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if name := nameOf(); name != "first" || stream.ProtoMajor != 2 {
		t.Errorf("certificate of %s over %s, want first over HTTP/2", name, stream.Proto)
	}
	other, _ := authority.Issue(t, t.TempDir(), "unrelated")
	if err := os.Rename(other, cert); err != nil {
		t.Fatal(err)
	}
	log.await(t, "the API keeps the earlier one")
	if name := nameOf(); name != "first" {
		t.Errorf("certificate after an invalid change = %s, want first", name)
	}
	authority.Issue(t, dir, "second")
	log.await(t, "the TLS certificate has changed")
	if name := nameOf(); name != "second" {
		t.Errorf("certificate after the change = %s, want second", name)
	}
	close(goOn)
	if body, err := io.ReadAll(stream.Body); err != nil || string(body) != "HTTP/2.0\nend\n" {
		t.Errorf("the stream: got %q, %v, want it whole", body, err)
	}
	if n := log.count("the API keeps the earlier one"); n != 1 {
		t.Errorf("warnings = %d, want 1", n)
	}
}

// TestClientsNeedCertificates: with authorities for clients, only a certificate of them with one of
// the names is accepted.
func TestClientsNeedCertificates(t *testing.T) {
	t.Parallel()
	authority, strangers, goOn := certtest.NewAuthority(t), certtest.NewAuthority(t), make(chan struct{})
	close(goOn)
	cert, key := authority.Issue(t, t.TempDir(), "server")
	addr, _ := serve(t, config.TLS{Cert: cert, Key: key, ClientCA: authority.File, ClientNames: []string{"Proxy.example", "spiffe://example/proxy"}}, goOn)
	for name, tt := range map[string]struct {
		client *tls.Config
		want   bool
	}{
		"a name":            {authority.Client(t, "proxy.example"), true},
		"a URI":             {authority.Client(t, "spiffe://example/proxy"), true},
		"another name":      {authority.Client(t, "worker.example"), false},
		"no certificate":    {authority.Client(t), false},
		"another authority": {&tls.Config{RootCAs: authority.Pool(), Certificates: strangers.Client(t, "proxy.example").Certificates}, false},
	} {
		_, err := get(t, addr, tt.client)
		if (err == nil) != tt.want {
			t.Errorf("a client with %s: got %v, want accepted: %t", name, err, tt.want)
		}
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t)
	cert, key := authority.Issue(t, t.TempDir(), "server")
	addr, _ := serve(t, config.TLS{Cert: cert, Key: key}, nil)
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: got %v, want accepted: %t", tls.VersionName(version), err, want)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

func TestErrorsNameTheirVariable(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t)
	cert, key := authority.Issue(t, t.TempDir(), "server")
	for variable, files := range map[string]config.TLS{
		"PERDURE_TLS_CERT_FILE":      {Cert: cert, Key: cert},
		"PERDURE_TLS_CLIENT_CA_FILE": {Cert: cert, Key: key, ClientCA: filepath.Join(t.TempDir(), "none")},
	} {
		_, err := certificates.Open(files, slog.New(slog.DiscardHandler))
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != variable {
			t.Errorf("%+v: got %v, want an error about %s", files, err, variable)
		}
	}
}
