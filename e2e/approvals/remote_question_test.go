package approvals

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/e2e/kit"
)

// shipperAgents is an agent with three remote tools that ask for a city: an HTTP tool, a tool of an
// MCP server that ends its calls with a question, and one of an older MCP server that asks over the
// connection.
const shipperAgents = `name: shipper
model: openai/scripted-by-the-test
tools: [ship, "mcp:web/*", "mcp:desk/ship"]
---
kind: tool
name: ship
description: Ships something to the address that the user gives.
parameters: {type: object, required: [what], properties: {what: {type: string}}}
http: {method: POST, url: "%s/ship"}
---
kind: mcp
name: web
url: %s
elicitation: true
---
kind: mcp
name: desk
command: [%s, %s]
elicitation: true
`

var whereTo = json.RawMessage(`{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}`)

// shippingServers are the three tool servers, which record what they ship.
type shippingServers struct {
	mu      sync.Mutex
	shipped []string
}

// ship notes a shipment, and returns its result.
func (d *shippingServers) ship(what, city string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shipped = append(d.shipped, what)
	return what + " goes to " + city + "."
}

// count returns the number of shipments of a thing.
func (d *shippingServers) count(what string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.shipped {
		if s == what {
			n++
		}
	}
	return n
}

// shipment has the arguments of a tool, and address the answer.
type shipment struct {
	What string `json:"what"`
}

type address struct {
	City string `json:"city"`
}

// ServeHTTP is the HTTP tool: it asks with 202, and is called again with the answers.
func (d *shippingServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p shipment
	var answers []struct {
		Status  string  `json:"status"`
		Content address `json:"content"`
	}
	said, err := base64.StdEncoding.DecodeString(r.Header.Get("Perdure-Answers"))
	if err == nil && len(said) > 0 {
		err = json.Unmarshal(said, &answers)
	}
	if err = errors.Join(err, json.NewDecoder(r.Body).Decode(&p)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(answers) == 0 {
		w.Header().Set("Content-Type", "application/vnd.perdure.question+json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": "Where to?", "responseSchema": whereTo})
		return
	}
	_, _ = io.WriteString(w, d.ship(p.What, answers[0].Content.City))
}

// call is the tool of the MCP server: it ends with its question, and is called again with the
// answer.
func (d *shippingServers) call(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var p shipment
	if err := json.Unmarshal(req.Params.Arguments, &p); err != nil {
		return nil, err
	}
	answer, ok := req.Params.InputResponses["where"].(*mcp.ElicitResult)
	if !ok {
		asks := &mcp.ElicitParams{Mode: "form", Message: "Where to?", RequestedSchema: whereTo}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"where": asks}}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: d.ship(p.What, fmt.Sprint(answer.Content["city"]))}}}, nil
}

// setupShipping starts the servers and a process whose agent has their tools.
func setupShipping(t *testing.T) (*shippingServers, *kit.Perdure) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("node", "mcp", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	d := &shippingServers{}
	server := mcp.NewServer(&mcp.Implementation{Name: "docks", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ship", Description: "Ships.", InputSchema: json.RawMessage(`{"type":"object"}`)}, d.call)
	mux := http.NewServeMux()
	mux.Handle("/ship", d)
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	return d, kit.SetupWith(t, fmt.Sprintf(shipperAgents, front.URL, front.URL+"/mcp", node, script))
}

// TestQuestionsOfRemoteTools: remote tools ask, the process is killed, and the answers arrive: over
// REST, from a stock client and from CopilotKit. Each tool receives its answer and ships once.
func TestQuestionsOfRemoteTools(t *testing.T) {
	t.Parallel()
	d, p := setupShipping(t)
	page := kit.StartCopilotKit(t, "shipper", p.Proxy(t)+kit.ShipperPath)
	var answers []func(t *testing.T)
	for _, tool := range []string{"ship", "web_ship", "desk_ship"} {
		for way, ask := range map[string]func(t *testing.T, prompt string) (asked kit.Interrupt, answer func(t *testing.T)){
			"REST":      p.AskOverREST,
			"HttpAgent": p.AskStockClient,
			"CopilotKit": func(t *testing.T, prompt string) (kit.Interrupt, func(t *testing.T)) {
				return p.AskBrowserPage(t, page, prompt)
			},
		} {
			prompt, what, name := kit.Marked("Ship it."), kit.Marked("parcel"), tool+" by "+way
			scriptQuestions(t, prompt, kit.Marked("Shipped."), kit.ModelCall{Name: tool, Arguments: fmt.Sprintf(`{"what":%q}`, what)})
			asked, answer := ask(t, prompt)
			if asked.Message != "Where to?" || asked.Reason != "input_required" {
				t.Errorf("%s: interrupt = %+v, want the question of the tool", name, asked)
			}
			answers = append(answers, func(t *testing.T) {
				t.Helper()
				answer(t)
				if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{what + " goes to Ulm."}) {
					t.Errorf("%s: results sent to the model = %q, want that %s goes to Ulm", name, got, what)
				}
				if n := d.count(what); n != 1 && tool != "desk_ship" {
					t.Errorf("%s: number of shipments = %d, want 1", name, n)
				}
			})
		}
	}
	p.AwaitResponses()
	p.Kill()
	p.Start(t)
	for _, answer := range answers {
		answer(t)
	}
}
