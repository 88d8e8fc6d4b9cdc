package kit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Browser is a profile of Chromium. Its tabs share WebSockets and storage, and those of other
// profiles do not. All profiles of an area share one process, which browser.mjs drives.
type Browser struct {
	t      *testing.T
	driver *browserDriver
	id     int
}

// Tab is a tab of a Browser. An error or a warning in its console fails the test with the next
// command.
type Tab struct {
	browser *Browser
	id      int
	// tolerated are parts of the console messages that do not fail the test.
	tolerated []string
	// console are the console messages so far.
	console []string
}

// NeedBrowser returns the path of Debian's chromium. Without it the test is skipped; make e2e
// installs it as root on Debian.
func NeedBrowser(t *testing.T) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("the browser of this test, chromium, is not installed")
	}
	return chromium
}

// NewBrowser opens a profile, which is closed when the test ends. Without Chromium the test is
// skipped.
func NewBrowser(t *testing.T) *Browser {
	t.Helper()
	chromium := NeedBrowser(t)
	driver, err := sharedBrowser.start(chromium)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t, driver: driver, id: driver.newID()}
	t.Cleanup(func() {
		if _, err := driver.execute(map[string]any{"profile": b.id, "close": true}); err != nil {
			t.Errorf("close the profile: %v", err)
		}
	})
	return b
}

// Open opens a page in a new tab. tolerated are parts of console messages that do not fail the
// test.
func (b *Browser) Open(url string, tolerated ...string) *Tab {
	b.t.Helper()
	tab := &Tab{browser: b, id: b.driver.newID(), tolerated: tolerated}
	tab.do(map[string]any{"open": url})
	return tab
}

// OpenAll opens a page in a new tab for each URL, several at a time.
func (b *Browser) OpenAll(urls []string, tolerated ...string) []*Tab {
	b.t.Helper()
	tabs := make([]*Tab, len(urls))
	var opening errgroup.Group
	opening.SetLimit(8)
	for i, url := range urls {
		tab := &Tab{browser: b, id: b.driver.newID(), tolerated: tolerated}
		tabs[i] = tab
		opening.Go(func() error {
			_, err := tab.execute(map[string]any{"open": url})
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		b.t.Fatal(err)
	}
	return tabs
}

// OpenWithClock is like Open, for a tab with a clock of its own, which Forward moves.
func (b *Browser) OpenWithClock(url string, tolerated ...string) *Tab {
	b.t.Helper()
	tab := &Tab{browser: b, id: b.driver.newID(), tolerated: tolerated}
	tab.do(map[string]any{"open": url, "clock": true})
	return tab
}

// OpenTab opens a page in a new tab of a new profile.
func OpenTab(t *testing.T, url string, tolerated ...string) *Tab {
	t.Helper()
	return NewBrowser(t).Open(url, tolerated...)
}

// OpenCopilotKit opens a page with CopilotKit in a new tab of a new profile, and waits until the
// page has read its thread. CopilotKit drops a message that is sent before that.
func OpenCopilotKit(t *testing.T, url string) *Tab {
	t.Helper()
	b := NewBrowser(t)
	tab := &Tab{browser: b, id: b.driver.newID()}
	tab.do(map[string]any{"open": url, "response": "/connect"})
	return tab
}

// TestPage runs a test.mjs of examples/dojo in a new tab of a new profile, with the URL of its
// page.
func TestPage(t *testing.T, file, url string) {
	t.Helper()
	b := NewBrowser(t)
	tab := &Tab{browser: b, id: b.driver.newID()}
	tab.do(map[string]any{"test": file, "url": url})
}

// Reload reloads the page.
func (p *Tab) Reload() { p.browser.t.Helper(); p.do(map[string]any{"reload": true}) }

// Forward moves the clock of a tab of OpenWithClock forward: the timers of the page that are due
// fire. The time of other processes is the same.
func (p *Tab) Forward(d time.Duration) {
	p.browser.t.Helper()
	p.do(map[string]any{"forward": d.Milliseconds()})
}

// SetOffline takes the network from all tabs of the profile, or gives it back. Connections that are
// open receive nothing meanwhile.
func (p *Tab) SetOffline(offline bool) {
	p.browser.t.Helper()
	p.do(map[string]any{"offline": offline})
}

// Close closes the tab.
func (p *Tab) Close() { p.browser.t.Helper(); p.do(map[string]any{"close": true}) }

// Type types a text into a field.
func (p *Tab) Type(field, text string) {
	p.browser.t.Helper()
	p.do(map[string]any{"into": field, "type": text})
}

// Click clicks an element, when it is enabled.
func (p *Tab) Click(element string) { p.browser.t.Helper(); p.do(map[string]any{"click": element}) }

// Await waits until an element is visible that contains the text. It returns the text of the page.
func (p *Tab) Await(element, text string) string {
	p.browser.t.Helper()
	return p.do(map[string]any{"await": element, "has": text}).Text
}

// AwaitGone waits until no such element is visible.
func (p *Tab) AwaitGone(element string) {
	p.browser.t.Helper()
	p.do(map[string]any{"await": element, "gone": true})
}

// Evaluate evaluates an expression of JavaScript in the page, and waits if it is a promise. It
// decodes the value into a pointer; nil = the value does not matter.
func (p *Tab) Evaluate(expression string, into any) {
	p.browser.t.Helper()
	value := p.do(map[string]any{"evaluate": expression}).Value
	if into == nil {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		p.browser.t.Fatalf("%s: %v", expression, err)
	}
}

// HeapSize returns the bytes of the page's JavaScript heap after a garbage collection.
func (p *Tab) HeapSize() int {
	t := p.browser.t
	t.Helper()
	var size int
	if err := json.Unmarshal(p.do(map[string]any{"heap": true}).Value, &size); err != nil {
		t.Fatal(err)
	}
	return size
}

// WantConsole fails the test unless one console message so far contains all parts.
func (p *Tab) WantConsole(parts ...string) {
	t := p.browser.t
	t.Helper()
	if !slices.ContainsFunc(p.console, func(message string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(message, part) })
	}) {
		t.Errorf("no console message has %q:\n%s", parts, strings.Join(p.console, "\n"))
	}
}

// Tolerate accepts console messages that contain a text, from here on.
func (p *Tab) Tolerate(text string) { p.tolerated = append(p.tolerated, text) }

func (p *Tab) do(command map[string]any) browserLine {
	t := p.browser.t
	t.Helper()
	line, err := p.execute(command)
	for _, text := range p.browser.driver.messagesOf(p.id) {
		p.console = append(p.console, text)
		if !slices.ContainsFunc(p.tolerated, func(part string) bool { return strings.Contains(text, part) }) {
			t.Errorf("console message of the page: %s", text)
		}
	}
	if err != nil {
		t.Fatalf("%v: %v\nthe page shows:\n%s", command, err, line.Text)
	}
	return line
}

// execute executes a command in the tab.
func (p *Tab) execute(command map[string]any) (browserLine, error) {
	command["profile"], command["tab"], command["most"] = p.browser.id, p.id, WaitTimeout.Milliseconds()
	return p.browser.driver.execute(command)
}

// browserLine is a line that browser.mjs prints.
type browserLine struct {
	ID    int             `json:"id"`
	Tab   int             `json:"tab"`
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// sharedBrowser is the Chromium of the area. It starts with the first profile, and Main stops it.
var sharedBrowser browserProcess

type browserProcess struct {
	once   sync.Once
	driver *browserDriver
	err    error
}

func (b *browserProcess) start(chromium string) (*browserDriver, error) {
	b.once.Do(func() { b.driver, b.err = launchBrowser(chromium) })
	return b.driver, b.err
}

// stop ends Chromium, if it has started.
func (b *browserProcess) stop() error {
	if b.driver == nil {
		return nil
	}
	_ = b.driver.stdin.Close() // browser.mjs closes Chromium and exits
	<-b.driver.ended
	return b.driver.cmd.Wait()
}

// browserDriver is a process of browser.mjs. Its methods may be called concurrently.
type browserDriver struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process prints nothing more

	mu       sync.Mutex
	stdin    io.WriteCloser
	last     int
	waiting  map[int]chan browserLine // by the ID of the command
	messages map[int][]string         // console messages by tab
}

func launchBrowser(chromium string) (*browserDriver, error) {
	dir := filepath.Join("node", "browser")
	if err := Install(dir); err != nil {
		return nil, err
	}
	cmd := exec.Command("node", filepath.Join("..", "browser.mjs"), chromium)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &browserDriver{cmd: cmd, ended: make(chan struct{}), stdin: stdin, waiting: map[int]chan browserLine{}, messages: map[int][]string{}}
	go d.read(stdout)
	return d, nil
}

// read delivers the lines of the process until it ends.
func (d *browserDriver) read(stdout io.Reader) {
	defer close(d.ended)
	lines := json.NewDecoder(bufio.NewReader(stdout))
	for {
		var line browserLine
		if lines.Decode(&line) != nil {
			return
		}
		d.mu.Lock()
		if line.Type == "console" {
			d.messages[line.Tab] = append(d.messages[line.Tab], line.Text)
		} else {
			d.waiting[line.ID] <- line
			delete(d.waiting, line.ID)
		}
		d.mu.Unlock()
	}
}

func (d *browserDriver) newID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	return d.last
}

// execute executes a command. After an error the line has the text of the page.
func (d *browserDriver) execute(command map[string]any) (browserLine, error) {
	id, answer := d.newID(), make(chan browserLine, 1)
	command["id"] = id
	d.mu.Lock()
	d.waiting[id] = answer
	err := json.NewEncoder(d.stdin).Encode(command)
	d.mu.Unlock()
	if err != nil {
		return browserLine{}, err
	}
	select {
	case line := <-answer:
		if line.Type == "failed" {
			return line, errors.New(line.Error)
		}
		return line, nil
	case <-d.ended:
		return browserLine{}, fmt.Errorf("the driver of Chromium has ended: %w", io.ErrUnexpectedEOF)
	}
}

// messagesOf returns the console messages of a tab since the last call.
func (d *browserDriver) messagesOf(tab int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	messages := d.messages[tab]
	delete(d.messages, tab)
	return messages
}
