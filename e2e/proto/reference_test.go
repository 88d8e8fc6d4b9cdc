package proto

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// reference is @ag-ui/proto in a process of its own.
type reference struct {
	t   *testing.T
	in  *json.Encoder
	out *json.Decoder
}

// reply is the answer to one job.
type reply struct {
	Bytes   []byte          `json:"bytes"`
	Event   json.RawMessage `json:"event"`
	Error   string          `json:"error"`
	Console []string        `json:"console"`
}

func startReference(t *testing.T) *reference {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the reference implementation needs node, which is not installed")
	}
	dir, err := filepath.Abs("../node/proto")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@ag-ui", "proto")); err != nil {
		t.Skip(`@ag-ui/proto is not installed: "make test" does it, or "npm ci --ignore-scripts" in e2e/node/proto`)
	}
	cmd := exec.CommandContext(t.Context(), node, "../codec.mjs")
	cmd.Dir = dir
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	return &reference{t: t, in: json.NewEncoder(in), out: json.NewDecoder(bufio.NewReader(out))}
}

func (r *reference) ask(job map[string]any) reply {
	r.t.Helper()
	if err := r.in.Encode(job); err != nil {
		r.t.Fatal(err)
	}
	var answer reply
	if err := r.out.Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return answer
}

func (r *reference) encode(event json.RawMessage) reply {
	r.t.Helper()
	return r.ask(map[string]any{"encode": event})
}

func (r *reference) decode(message []byte) reply {
	r.t.Helper()
	return r.ask(map[string]any{"decode": message})
}
