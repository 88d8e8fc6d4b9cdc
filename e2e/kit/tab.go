package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Tab is a tab of Chromium, driven by page.mjs. Errors and warnings in its console fail the test.
type Tab struct {
	t     *testing.T
	stdin io.Writer
	lines *json.Decoder
	// tolerated are parts of the console messages that do not fail the test.
	tolerated []string
}

// NewTab starts Chromium, which ends with the test. Without Chromium the test is skipped.
func NewTab(t *testing.T) *Tab {
	t.Helper()
	chromium := NeedBrowser(t)
	if err := Install(react); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "page.mjs"), chromium)
	cmd.Dir, cmd.Stderr = react, os.Stderr
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
	t.Cleanup(func() {
		_ = stdin.Close() // page.mjs closes Chromium and exits
		_ = cmd.Wait()
		cancel()
	})
	return &Tab{t: t, stdin: stdin, lines: json.NewDecoder(bufio.NewReader(stdout))}
}

// Open opens a page.
func (p *Tab) Open(url string) { p.t.Helper(); p.do(map[string]any{"open": url}) }

// Reload reloads the page.
func (p *Tab) Reload() { p.t.Helper(); p.do(map[string]any{"reload": true}) }

// Type types a text into a field.
func (p *Tab) Type(field, text string) {
	p.t.Helper()
	p.do(map[string]any{"into": field, "type": text})
}

// Click clicks an element, when it is enabled.
func (p *Tab) Click(element string) { p.t.Helper(); p.do(map[string]any{"click": element}) }

// Await waits until an element is visible that contains the text. It returns the text of the page.
func (p *Tab) Await(element, text string) string {
	p.t.Helper()
	return p.do(map[string]any{"await": element, "has": text})
}

// AwaitGone waits until no such element is visible.
func (p *Tab) AwaitGone(element string) {
	p.t.Helper()
	p.do(map[string]any{"await": element, "gone": true})
}

// Tolerate accepts console messages that contain a text, from here on.
func (p *Tab) Tolerate(text string) { p.tolerated = append(p.tolerated, text) }

func (p *Tab) do(command map[string]any) string {
	p.t.Helper()
	command["most"] = WaitTimeout.Milliseconds()
	if err := json.NewEncoder(p.stdin).Encode(command); err != nil {
		p.t.Fatal(err)
	}
	for {
		var line struct{ Type, Text, Error string }
		if err := p.lines.Decode(&line); err != nil {
			p.t.Fatal(err)
		}
		switch line.Type {
		case "done":
			return line.Text
		case "failed":
			p.t.Fatalf("%v: %s\nthe page shows:\n%s", command, line.Error, line.Text)
		}
		if !slices.ContainsFunc(p.tolerated, func(part string) bool { return strings.Contains(line.Text, part) }) {
			p.t.Errorf("console message of the page: %s", line.Text)
		}
	}
}
