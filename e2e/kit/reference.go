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

// recording is a stream, and what its reader had before, for the reference client to read.
type recording struct {
	Test       string            `json:"test"`
	Generation string            `json:"generation"`
	Messages   any               `json:"messages,omitempty"`
	State      any               `json:"state,omitempty"`
	Events     []json.RawMessage `json:"events,omitempty"`
	Protobuf   []byte            `json:"protobuf,omitempty"` // in place of events
	Compact    bool              `json:"compact,omitempty"`  // as clients do that keep what they read
}

// ended reports whether the last event ends a run.
func (r recording) ended() bool {
	last := Event{Data: r.Events[len(r.Events)-1]}
	last.Type = last.Member("type")
	return last.Terminal()
}

// reading is what the client ended with.
type reading struct {
	Error      string           `json:"error"`
	Messages   []map[string]any `json:"messages"`
	State      any              `json:"state"`
	Invalid    []remark         `json:"invalid"`
	Complaints []remark         `json:"complaints"`
}

// remark is about an event of a stream, by its place.
type remark struct {
	Event int    `json:"event"`
	Text  string `json:"text"`
}

// tolerable is what the client says about the end of a call that was withdrawn, see withdrawn.
const tolerable = "TOOL_CALL_END: No message found containing tool call"

// verdict returns what the client and its schema have against a stream.
func (r reading) verdict() error {
	var errs []error
	if r.Error != "" {
		errs = append(errs, errors.New("the client refuses it "+r.Error))
	}
	for _, i := range r.Invalid {
		errs = append(errs, fmt.Errorf("event %d does not fit the schema: %s", i.Event, i.Text))
	}
	for _, c := range r.Complaints {
		if !strings.Contains(c.Text, tolerable) {
			errs = append(errs, fmt.Errorf("the client complains at event %d: %s", c.Event, c.Text))
		}
	}
	return errors.Join(errs...)
}

// Conversation returns the messages that the client shows. Reasoning that was withdrawn, and that
// clients keep, is emptied and not shown.
func (r reading) Conversation() []map[string]any {
	var shown []map[string]any
	for _, m := range r.Messages {
		if m["role"] != "reasoning" || m["content"] != "" {
			shown = append(shown, m)
		}
	}
	return shown
}

// referenceClient is the reference client of a generation, which reads streams one after the other.
// It is safe for concurrent use.
type referenceClient struct {
	mu       sync.Mutex
	cmd      *exec.Cmd
	complain Output
	stdin    io.Closer
	jobs     *json.Encoder
	answers  *json.Decoder
}

func launchReference(g Generation) (*referenceClient, error) {
	c := &referenceClient{cmd: exec.Command("node", filepath.Join("..", "replay.mjs"))}
	c.cmd.Dir = filepath.Join("node", g.Name)
	c.cmd.Stderr = &c.complain
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

// Read lets the client read a stream. What is wrong with that is for the caller to judge.
func (c *referenceClient) Read(r recording) (reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	watch := time.AfterFunc(Patience, func() { _ = c.cmd.Process.Kill() })
	defer watch.Stop()
	var end reading
	err := c.jobs.Encode(r)
	if err == nil {
		err = c.answers.Decode(&end)
	}
	if err != nil {
		return end, fmt.Errorf("the reference client of %s: %w\n%s", r.Generation, err, c.complain.String())
	}
	return end, nil
}

func (c *referenceClient) Stop() error {
	_ = c.stdin.Close() // it ends with that
	return c.cmd.Wait()
}

// references are the reference clients by the name of their generation.
type references map[string]*referenceClient

func launchReferences() (references, error) {
	all := references{}
	for _, g := range Generations {
		c, err := launchReference(g)
		if err != nil {
			return nil, errors.Join(err, all.Stop())
		}
		all[g.Name] = c
	}
	return all, nil
}

func (all references) Stop() error {
	var err error
	for _, c := range all {
		err = errors.Join(err, c.Stop())
	}
	return err
}
