package docs

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// callingPage is a page that calls the API in the ways of pages, and shows what it receives.
const callingPage = `<!doctype html><link rel="icon" href="data:,"><body><script type="module">
const api = new URLSearchParams(location.search).get("api");
const show = (text) => document.body.append(Object.assign(document.createElement("p"), { textContent: text }));
const call = (name, path, init) =>
  fetch(api + path, init).then(({ status }) => show(name + " " + status), (error) => show(name + " " + error));
await call("read", "/v1/agents");
await call("post", "/v1/threads/t/runs/r/cancel", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
await call("header", "/v1/agents", { headers: { "X-Tenant": "shop" } });
await call("cookies", "/v1/agents", { credentials: "include" });
const socket = new WebSocket(api.replace("http", "ws") + "/v1/ws", ["ag-ui.perdure.v1"]);
socket.onopen = () => show("socket open");
socket.onclose = ({ code }) => show("socket " + code);
</script>`

// codeBlock returns the only block of a page in a language.
func codeBlock(t *testing.T, text, language string) string {
	t.Helper()
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of %s", len(blocks), language)
	}
	return blocks[0][1]
}

// TestOriginsGuide: the API treats origins and hosts as the guide shows, in its commands and in
// Chromium. The proxies of the guide forward requests and WebSockets of their pages.
func TestOriginsGuide(t *testing.T) {
	t.Parallel()
	text, dir := readGuide(t, "guides/cors-and-hosts"), t.TempDir()
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Env = regexp.MustCompile(`PERDURE_(CORS_ORIGINS|HOSTS)=\S+`).FindAllString(text, -1)
	p.InspectAtEnd(t)
	p.Start(t)

	commands := 0
	for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(block[2], "PERDURE_") {
			continue // the test starts it
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(block[2], "http://127.0.0.1:8080", p.URL("")))
		out, err := cmd.Output()
		if err != nil || block[3] == "" {
			t.Errorf("%v: %s\n%s", err, block[2], out)
		}
		wantLines(t, block[3], string(out))
		commands++
	}
	if commands != 3 {
		t.Errorf("the page has %d commands", commands)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL("/v1/agents"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "a.shop.example:8080"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("request to a listed host: %s, want %d", resp.Status, http.StatusOK)
	}
	t.Run("vite", func(t *testing.T) { wantForwarded(t, startVite(t, p, codeBlock(t, text, "ts"))) })
	t.Run("nginx", func(t *testing.T) { wantForwarded(t, startNginx(t, p, codeBlock(t, text, "nginx"))) })
	t.Run("browser", func(t *testing.T) { wantErrorsOfBrowser(t, p) })
}

// wantForwarded checks that a proxy forwards a request and a WebSocket of a page that it serves
// under a host name of its own. Browsers that send no Sec-Fetch-Site need this.
func wantForwarded(t *testing.T, address string) {
	t.Helper()
	host := strings.Replace(address, "127.0.0.1", "shop.localhost", 1)
	request := func(method, path string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Origin", "http://"+host)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := request(http.MethodPost, "/v1/agents/demo/runs", "Content-Type", "application/json"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a run without a thread: %s, want the API's 400", resp.Status)
	}
	if resp := request(http.MethodGet, "/v1/ws", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
		"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="); resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("a WebSocket: %s", resp.Status)
	}
}

// startVite starts Vite with a configuration, and returns its address.
func startVite(t *testing.T, p *kit.Perdure, config string) string {
	t.Helper()
	packages, dir := filepath.Join("node", "page"), t.TempDir()
	if err := kit.Install(packages); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(filepath.Join(packages, "node_modules"))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "vite.config.ts"), []byte(strings.ReplaceAll(config, "http://127.0.0.1:8080", p.URL(""))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(kit.FreePorts(t, 1)[0])
	cmd := exec.Command("node", filepath.Join("node_modules", "vite", "bin", "vite.js"), "--host", "127.0.0.1", "--port", port, "--strictPort")
	cmd.Dir = dir
	launchProxy(t, cmd, "Local:")
	return "127.0.0.1:" + port
}

// startNginx starts nginx with a location, and returns its address. Without nginx the test is
// skipped.
func startNginx(t *testing.T, p *kit.Perdure, location string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	config := "daemon off;\nmaster_process off;\nerror_log stderr notice;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n"
	for _, module := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += module + "_temp_path " + module + ";\n"
	}
	config += "server {\nlisten " + address + ";\n" + strings.ReplaceAll(location, "http://127.0.0.1:8080", p.URL("")) + "}\n}\n"
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `exec "$0" -p "$1" -c "$2" -e stderr 2>&1`, program, dir, file)
	launchProxy(t, cmd, "event method")
	return address
}

// launchProxy starts a proxy, waits for a line of its output that has a text, and stops it when the
// test ends.
func launchProxy(t *testing.T, cmd *exec.Cmd, line string) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "NO_COLOR=1") // Vite colors its output where CI is set, also in a pipe
	var output kit.Output
	process, err := kit.Launch(t.Context(), cmd, &output, func(b []byte) bool { return bytes.Contains(b, []byte(line)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop() }) // Vite exits with the signal
}

// wantErrorsOfBrowser opens a page of an allowed origin and one of another origin in Chromium,
// whose console shows the errors of the guide.
func wantErrorsOfBrowser(t *testing.T, p *kit.Perdure) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(callingPage)) }))
	t.Cleanup(server.Close)
	tolerated := []string{"Failed to load resource", "blocked by CORS policy", "WebSocket connection to"}
	tab := kit.OpenTab(t, server.URL+"/?api="+p.URL(""), tolerated...)
	tab.Await("p", "socket open")
	for _, result := range []string{"read 200", "post 404", "header TypeError: Failed to fetch", "cookies TypeError: Failed to fetch"} {
		tab.Await("p", result)
	}
	tab.WantConsole("Request header field x-tenant is not allowed")
	tab.WantConsole("'Access-Control-Allow-Credentials' header in the response is ''")

	tab = kit.OpenTab(t, strings.Replace(server.URL, "127.0.0.1", "shop.localhost", 1)+"/?api="+p.URL(""), tolerated...)
	tab.Await("p", "socket 1006")
	for _, result := range []string{"read TypeError", "post TypeError", "header TypeError", "cookies TypeError"} {
		tab.Await("p", result)
	}
	tab.WantConsole("No 'Access-Control-Allow-Origin' header is present")
	tab.WantConsole("WebSocket connection to", "failed:", "Unexpected response code: 403")
}
