package kit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// nodeServer is a running server in node/.
type nodeServer struct {
	URL   string
	stdin io.Closer // the server exits when it is closed
	cmd   *exec.Cmd
}

// launchNode starts a script with the packages of a directory in node/ and waits until it prints its
// URL.
func launchNode(script, folder string, args ...string) (*nodeServer, error) {
	return launchNodeIn(filepath.Join("node", folder), filepath.Join("..", script), args...)
}

// launchNodeIn is like launchNode, with any directory and the path of a script.
func launchNodeIn(dir, path string, args ...string) (*nodeServer, error) {
	cmd := exec.Command("node", append([]string{path}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "COPILOTKIT_TELEMETRY_DISABLED=true")
	cmd.Stderr = os.Stderr
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
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var hello struct {
		URL string `json:"url"`
	}
	if err == nil {
		err = json.Unmarshal(line, &hello)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s did not start: %w", path, err)
	}
	return &nodeServer{URL: hello.URL, stdin: stdin, cmd: cmd}, nil
}

// Kill kills the server with SIGKILL and waits.
func (s *nodeServer) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop ends the server and waits until it exits.
func (s *nodeServer) Stop() error {
	_ = s.stdin.Close()
	return s.cmd.Wait()
}
