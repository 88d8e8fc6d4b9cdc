package kit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// recording is a stream and the messages and state that its client had before.
type recording struct {
	Test       string            `json:"test"`
	Generation string            `json:"generation"`
	Messages   any               `json:"messages,omitempty"`
	State      any               `json:"state,omitempty"`
	Events     []json.RawMessage `json:"events,omitempty"`
	Protobuf   []byte            `json:"protobuf,omitempty"` // replaces Events
	Compact    bool              `json:"compact,omitempty"`  // compact the stream before reading
}

// ended reports whether the last event ends a run.
func (r recording) ended() bool {
	last := Event{Data: r.Events[len(r.Events)-1]}
	last.Type = last.Member("type")
	return last.Terminal()
}

// clientResult is what the client has after a stream.
type clientResult struct {
	Error      string           `json:"error"`
	Messages   []map[string]any `json:"messages"`
	State      any              `json:"state"`
	Invalid    []clientRemark   `json:"invalid"`
	Complaints []clientRemark   `json:"complaints"`
}

// clientRemark is a message about an event, by its index.
type clientRemark struct {
	Event int    `json:"event"`
	Text  string `json:"text"`
}

// toleratedComplaint is the client's warning about the end of a retracted call, see RetractWarning.
const toleratedComplaint = "TOOL_CALL_END: No message found containing tool call"

// check returns the client's errors and the violations of its schema.
func (r clientResult) check() error {
	var errs []error
	if r.Error != "" {
		errs = append(errs, errors.New("the client refuses the stream "+r.Error))
	}
	for _, i := range r.Invalid {
		errs = append(errs, fmt.Errorf("event %d does not fit the schema: %s", i.Event, i.Text))
	}
	for _, c := range r.Complaints {
		if !strings.Contains(c.Text, toleratedComplaint) {
			errs = append(errs, fmt.Errorf("console message at event %d: %s", c.Event, c.Text))
		}
	}
	return errors.Join(errs...)
}

// Conversation returns the messages that the client shows. A retracted reasoning message is empty
// and not shown.
func (r clientResult) Conversation() []map[string]any {
	var shown []map[string]any
	for _, m := range r.Messages {
		if m["role"] != "reasoning" || m["content"] != "" {
			shown = append(shown, m)
		}
	}
	return shown
}

// referenceClient is a reference client that reads streams one after the other. It is safe for
// concurrent use.
type referenceClient struct {
	mu         sync.Mutex
	cmd        *exec.Cmd
	complaints Output
	stdin      io.Closer
	jobs       *json.Encoder
	answers    *json.Decoder
}

// startReferenceClient starts the reference client of a generation.
func startReferenceClient(g Generation) (*referenceClient, error) {
	c := &referenceClient{cmd: exec.Command("node", filepath.Join("..", "replay.mjs"))}
	c.cmd.Dir = filepath.Join("node", g.Name)
	c.cmd.Stderr = &c.complaints
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdin, c.jobs, c.answers = stdin, json.NewEncoder(stdin), json.NewDecoder(bufio.NewReader(stdout))
	return c, c.cmd.Start()
}

// Read makes the client read a stream. The caller checks the result.
func (c *referenceClient) Read(r recording) (clientResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	watch := time.AfterFunc(WaitTimeout, func() { _ = c.cmd.Process.Kill() })
	defer watch.Stop()
	var end clientResult
	err := c.jobs.Encode(r)
	if err == nil {
		err = c.answers.Decode(&end)
	}
	if err != nil {
		return end, fmt.Errorf("the reference client of %s: %w\n%s", r.Generation, err, c.complaints.String())
	}
	return end, nil
}

// Stop ends the client and waits until it exits.
func (c *referenceClient) Stop() error {
	_ = c.stdin.Close() // ends the client
	return c.cmd.Wait()
}

// referenceClients are the reference clients by the name of their generation.
type referenceClients map[string]*referenceClient

// startReferenceClients starts the reference clients of all generations.
func startReferenceClients() (referenceClients, error) {
	all := referenceClients{}
	for _, g := range Generations {
		c, err := startReferenceClient(g)
		if err != nil {
			return nil, errors.Join(err, all.Stop())
		}
		all[g.Name] = c
	}
	return all, nil
}

// Stop stops all clients.
func (all referenceClients) Stop() error {
	var err error
	for _, c := range all {
		err = errors.Join(err, c.Stop())
	}
	return err
}
