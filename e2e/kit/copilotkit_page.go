package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// copilotKitPage is CopilotKit without a user interface, as a page has it: one thread in a process
// of copilotkit_page.mjs.
type copilotKitPage struct {
	stdin           io.Writer
	lines           *json.Decoder
	toleratesErrors bool
	// Close closes the page, as a person closes a tab.
	Close func()
}

// pageOutput is a line that a page prints.
type pageOutput struct {
	Type       string          `json:"type"`
	Run        string          `json:"run"`
	Messages   []Message       `json:"messages"`
	Interrupts []Interrupt     `json:"interrupts"`
	Args       json.RawMessage `json:"args"`
	Text       string          `json:"text"`
	// Error is the message of the run's RUN_ERROR.
	Error string `json:"error"`
}

// Open opens a page. tool is the name of the client tool of the page; "" = none.
func (c CopilotKit) Open(t *testing.T, agent, thread, tool string) *copilotKitPage {
	t.Helper()
	return c.OpenAs(t, "", agent, thread, tool)
}

// OpenAs is like Open, with a bearer token; "" = none.
func (c CopilotKit) OpenAs(t *testing.T, token, agent, thread, tool string) *copilotKitPage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "copilotkit_page.mjs"), c.URL, agent, thread, tool, token)
	cmd.Dir, cmd.Stderr = filepath.Join("node", "copilotkit"), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := &copilotKitPage{stdin: stdin, lines: json.NewDecoder(bufio.NewReader(stdout))}
	page.Close = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait() // killed by cancel
	})
	t.Cleanup(page.Close)
	return page
}

// Do sends a command to the page and returns the next line that the page prints.
func (b *copilotKitPage) Do(t *testing.T, command map[string]any) pageOutput {
	t.Helper()
	b.Send(t, command)
	return b.Next(t)
}

// Send sends a command to the page.
func (b *copilotKitPage) Send(t *testing.T, command map[string]any) {
	t.Helper()
	if err := json.NewEncoder(b.stdin).Encode(command); err != nil {
		t.Fatal(err)
	}
}

// Next returns the next line that the page prints. A console message of the page fails the test,
// unless TolerateErrors was called.
func (b *copilotKitPage) Next(t *testing.T) pageOutput {
	t.Helper()
	for {
		var s pageOutput
		if err := b.lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "console" {
			return s
		}
		if !b.toleratesErrors {
			t.Errorf("console message of the page = %s, want none", s.Text)
		}
	}
}

// TolerateErrors accepts console messages from here on, because the runtime is killed.
func (b *copilotKitPage) TolerateErrors() { b.toleratesErrors = true }
