package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// spiedAgent is an agent with a program that reads the memory of the worker.
const spiedAgent = `name: clerk
model: scripted/clerk
tools: ["mcp:spy/*"]
---
kind: mcp
name: spy
command: [%s, spy]
env: {SHOWN: "${secret:SHOWN}"}
---
kind: script
name: clerk
turns:
  - steps:
      - calls: [{tool: spy_look}]
      - say: "Done."
`

// The secrets of the spied processes. The program gets only the first one.
const (
	shownSecret  = "shown-0123456789"
	hiddenSecret = "hidden-0123456789"
)

// otherUser is a user who is neither root nor that of kit.Unprivileged.
const otherUser = 65533

// spied are the programs that tests spy on, in a directory that their user can read.
type spied struct {
	dir  string
	user *syscall.SysProcAttr // of the programs; nil = that of the test
	spy  string               // the program that reads other processes
}

// setupSpied makes the directory, since other users cannot read the directories of the tests.
func setupSpied(t *testing.T) *spied {
	t.Helper()
	dir, err := os.MkdirTemp("", "perdure-spied-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &spied{dir: dir, user: kit.Unprivileged(t, dir)}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users execute the programs
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.spy = s.add(t, executable)
	return s
}

// add links a program into the directory, or copies it from another file system. It returns the
// path.
func (s *spied) add(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(s.dir, filepath.Base(program))
	if os.Link(program, path) == nil {
		return path
	}
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // other users execute the program
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// environ are the variables of a spied process.
func (s *spied) environ() []string {
	return []string{"HOME=" + s.dir, "OPENAI_API_KEY=" + hiddenSecret, "PERDURE_SECRET_SHOP=" + hiddenSecret, "PERDURE_SECRET_SHOWN=" + shownSecret}
}

// wantHidden has other programs read a process: one of the same user, and one of another user if
// the test runs as root.
func (s *spied) wantHidden(t *testing.T, p *kit.Process) {
	t.Helper()
	users := []*syscall.SysProcAttr{s.user}
	if os.Getuid() == 0 {
		users = append(users, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}})
	}
	for _, user := range users {
		cmd := exec.Command(s.spy, spyCommand, strconv.Itoa(p.Cmd.Process.Pid)) //nolint:gosec // this test
		cmd.SysProcAttr, cmd.Env = user, []string{"SHOWN=" + shownSecret}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		wantHidden(t, string(out), p.Cmd.Path)
	}
}

// wantHidden checks what a spy has read: the command line, and nothing secret.
func wantHidden(t *testing.T, answer, program string) {
	t.Helper()
	var seen map[string]string
	if err := json.Unmarshal([]byte(answer), &seen); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if !strings.Contains(seen["cmdline"], program) {
		t.Errorf("command line = %q, want that of %s", seen["cmdline"], program)
	}
	if !strings.Contains(seen["own"], "SHOWN=") {
		t.Errorf("environment of the program = %q, want that of its definition", seen["own"])
	}
	for name, content := range seen {
		if strings.Contains(content, hiddenSecret) {
			t.Errorf("%s has the secret", name)
		}
		if isHidden := name == "environ" || name == "mem"; isHidden && !strings.Contains(content, "permission denied") {
			t.Errorf("%s can be read, or fails with another error than missing permission", name)
		}
	}
}

// TestProgramsCannotReadSecrets: the program of an MCP server runs as the user of the worker, and
// cannot read its secrets.
func TestProgramsCannotReadSecrets(t *testing.T) {
	t.Parallel()
	s := setupSpied(t)
	p := kit.NewPerdure(filepath.Join(s.dir, "data"), kit.SharedModel)
	p.Program, p.User, p.Env, p.Agents = s.add(t, kit.Program), s.user, s.environ(), filepath.Join(s.dir, "agents")
	if err := os.Mkdir(p.Agents, 0o755); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), fmt.Appendf(nil, spiedAgent, s.spy), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", kit.NewInput(kit.Marked("Look.")))
	answer := f.Until(t, kit.OfType("TOOL_CALL_RESULT")).Member("content")
	f.Finish(t)
	wantHidden(t, answer, p.Program)
	s.wantHidden(t, p.Process)
}

// TestProcessesHideTheirSecrets: processes of the same user cannot read the secrets of an API or a
// worker, from the moment at which it connects to its servers.
func TestProcessesHideTheirSecrets(t *testing.T) {
	t.Parallel()
	s := setupSpied(t)
	kit.BuildCluster(t)
	for _, name := range []string{"api", "worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(s.add(t, filepath.Join(kit.Programs, name)))
			cmd.SysProcAttr, cmd.Env = s.user, append(s.environ(), "NATS_URL=nats://127.0.0.1:1", "PERDURE_ADDR=127.0.0.1:0")
			out := &kit.Output{}
			p, err := kit.Launch(t.Context(), cmd, out, func(line []byte) bool { return strings.Contains(string(line), "waiting for a server") })
			if err != nil {
				t.Fatal(err)
			}
			s.wantHidden(t, p)
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
