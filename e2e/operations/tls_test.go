package operations

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/process/certificates/certtest"
)

// TestTLS: the API serves TLS with HTTP/2, and only a proxy with a certificate reaches it. Streams
// and WebSockets work, and an open WebSocket survives a change of the certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	cert, key := authority.Issue(t, dir, "first")
	c := kit.SetupCluster(t)
	c.Env = []string{
		"PERDURE_TLS_CERT_FILE=" + cert, "PERDURE_TLS_KEY_FILE=" + key, "PERDURE_AUTH=header",
		"PERDURE_TLS_CLIENT_CA_FILE=" + authority.File, "PERDURE_TLS_CLIENT_NAMES=proxy.example",
	}
	operator := fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	c.Env = append(c.Env, "PERDURE_METRICS_ADDR="+operator)
	_, address := c.LaunchAPI(t)
	wantOperatorRoutes(t, operator)
	c.Env = nil // the worker has no settings of the API
	c.StartWorker(t)
	proxy := authority.Client(t, "proxy.example")
	transport := &http.Transport{TLSClientConfig: proxy.Clone(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: kit.WaitTimeout}
	in := kit.NewInput(kit.Marked("What is 12*7?"))
	c.Threads.Add(in.ThreadID)
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+demo, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-User", "ann")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if events := kit.WantEvents(t, resp); resp.ProtoMajor != 2 || !events[len(events)-1].Terminal() {
		t.Errorf("run over %s: %d events, want it whole over HTTP/2", resp.Proto, len(events))
	}
	req.Method, req.URL.Path, req.Body = http.MethodGet, "/metrics", nil
	public, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer public.Body.Close()
	if public.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics on the address for clients: got %s, want 404", public.Status)
	}
	dialer := &websocket.Dialer{TLSClientConfig: proxy.Clone()}
	conn, answer, err := dialer.DialContext(t.Context(), "wss://"+address+"/v1/ws", http.Header{"X-Forwarded-User": {"ann"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	defer conn.Close()

	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client(t)}, Timeout: kit.WaitTimeout}
	if resp, err := stranger.Get("https://" + address + "/healthz"); err == nil {
		resp.Body.Close()
		t.Errorf("a client without a certificate: got %s, want no connection", resp.Status)
	}

	authority.Issue(t, dir, "second")
	for name, deadline := "", time.Now().Add(kit.WaitTimeout); name != "second"; {
		probe, err := tls.Dial("tcp", address, proxy)
		if err != nil {
			t.Fatal(err)
		}
		name = probe.ConnectionState().PeerCertificates[0].Subject.CommonName
		_ = probe.Close()
		if time.Now().After(deadline) {
			t.Fatal("new connections do not get the new certificate")
		}
		<-time.After(50 * time.Millisecond) // poll interval
	}
	if err := conn.WriteJSON(map[string]string{"type": "ping", "id": "p"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); err != nil {
		t.Errorf("the WebSocket after the change: %v", err)
	}
}

// wantOperatorRoutes checks that metrics and probes are on their own address, without TLS, and that
// "api probe" uses it.
func wantOperatorRoutes(t *testing.T, address string) {
	t.Helper()
	for path, text := range map[string]string{"/metrics": "go_goroutines", "/healthz": "ok", "/readyz": "ready"} {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), text) {
			t.Errorf("%s of the operator: got %s, %v, want %q", path, resp.Status, err, text)
		}
	}
	probe := exec.Command(filepath.Join(kit.Programs, "api"), "probe")
	probe.Env = append(os.Environ(), "PERDURE_METRICS_ADDR="+address, "TEMPORAL_CONFIG_FILE=none")
	if output, err := probe.CombinedOutput(); err != nil {
		t.Errorf("api probe: %v\n%s", err, output)
	}
}
