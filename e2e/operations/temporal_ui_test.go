package operations

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestTemporalUI: perdure dev serves Temporal's UI, whose API lists the workflow of a run. It answers
// only requests to this machine, and lets no page of another origin change anything. A port that is
// in use is an error with the flag that chooses another one.
func TestTemporalUI(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Flags = []string{"--temporal-ui-port", "0"}
	p.InspectAtEnd(t)
	p.Start(t)
	ui := p.Addrs.TemporalUI
	if !strings.Contains(p.Output.String(), ui) {
		t.Errorf("the start does not print the URL of the UI, %s", ui)
	}

	in := kit.NewInput(kit.Marked("What is 12*7?"))
	p.Run(t, in)
	var workflows struct {
		Executions []struct{ Execution struct{ WorkflowID string } }
	}
	list := ui + "/api/v1/namespaces/" + p.Addrs.Namespace + "/workflows?query=" + url.QueryEscape("WorkflowType='agent.run.v1'")
	status, body := request(t, http.MethodGet, list, nil)
	if err := json.Unmarshal(body, &workflows); err != nil || status != http.StatusOK {
		t.Fatalf("list of workflows = %d %s, %v", status, body, err)
	}
	if len(workflows.Executions) != 1 || !strings.HasSuffix(workflows.Executions[0].Execution.WorkflowID, in.ThreadID) {
		t.Errorf("workflows = %+v, want that of the thread %s", workflows.Executions, in.ThreadID)
	}
	if status, body := request(t, http.MethodGet, ui+"/namespaces", nil); status != http.StatusOK || !bytes.Contains(body, []byte("<html")) {
		t.Errorf("page = %d %.100s, want HTML", status, body)
	}

	terminate := ui + "/api/v1/namespaces/" + p.Addrs.Namespace + "/workflows/none/terminate"
	for name, tt := range map[string]struct {
		method, url string
		header      http.Header
	}{
		"host of another machine": {http.MethodGet, list, http.Header{"Host": {"evil.example"}}},
		"page of another origin":  {http.MethodPost, terminate, http.Header{"Origin": {"http://evil.example"}}},
	} {
		if status, body := request(t, tt.method, tt.url, tt.header); status != http.StatusForbidden {
			t.Errorf("%s: %d %s, want 403", name, status, body)
		}
	}

	other := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	at, err := url.Parse(ui)
	if err != nil {
		t.Fatal(err)
	}
	other.Flags = []string{"--temporal-ui-port", at.Port()}
	out, err := other.Command().CombinedOutput()
	if err == nil || !strings.Contains(string(out), "choose another port with --temporal-ui-port") {
		t.Errorf("a port in use: %v, %s, want an error that names the flag", err, out)
	}
}

// request sends a request with headers, of which Host replaces the host, and returns the status and
// the body of the response.
func request(t *testing.T, method, address string, header http.Header) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header, req.Host = header, header.Get("Host")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}
