package reference

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// reference is a process that runs a reference package and answers jobs, a line each.
type reference struct {
	t   *testing.T
	in  *json.Encoder
	out *json.Decoder
}

// startReference starts a script of e2e/node with the packages of a folder.
func startReference(t *testing.T, folder, script string) *reference {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the reference packages need node, which is not installed")
	}
	dir := filepath.Join("..", "node", folder)
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skipf(`the reference packages are not installed: "make test" does it, or "npm ci --ignore-scripts" in e2e/node/%s`, folder)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("..", script))
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
		_ = in.Close() // ends the process
		_ = cmd.Wait()
	})
	return &reference{t: t, in: json.NewEncoder(in), out: json.NewDecoder(bufio.NewReader(out))}
}

// ask sends a job and reads its answer.
func (r *reference) ask(job, answer any) {
	r.t.Helper()
	if err := r.in.Encode(job); err != nil {
		r.t.Fatal(err)
	}
	if err := r.out.Decode(answer); err != nil {
		r.t.Fatal(err)
	}
}
