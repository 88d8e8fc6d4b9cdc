package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a process that the bench has started. stop must be called.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	log    *os.File
	ended  chan struct{}
	result error // written before ended is closed
}

// stopPatience is how long a process may take to stop before it is killed.
const stopPatience = 20 * time.Second

// spawn starts a process whose output goes to a file in dir.
func spawn(dir, name string, env []string, program string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // ours; stopped by stop, with its patience
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, log: log, ended: make(chan struct{})}
	go func() {
		p.result = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// spawnRole starts this program in one of its roles, or another program that follows the rules of
// serve, and returns its first line of output.
func spawnRole(ctx context.Context, dir, name string, env []string, program string, args ...string) (*process, string, error) {
	p, err := spawn(dir, name, env, program, args...)
	if err != nil {
		return nil, "", err
	}
	var line string
	err = p.await(ctx, func() bool {
		text, _ := os.ReadFile(p.log.Name())
		first, _, whole := bytes.Cut(text, []byte{'\n'})
		line = string(first)
		return whole
	})
	if err != nil {
		return nil, "", errors.Join(err, p.stop())
	}
	return p, line, nil
}

// startPatience is how long a process may take until it is ready.
const startPatience = time.Minute

// await waits until a process is ready.
func (p *process) await(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended: %w\n%s", p.name, errors.Join(p.result), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, context.Cause(ctx), p.tail())
		}
	}
	return nil
}

// tail returns the end of a process's output.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return ""
	}
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if lines = append(lines, s.Text()); len(lines) > 10 {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// kill ends the process with SIGKILL and waits for it. stop must be called nevertheless.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	defer p.log.Close()
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopPatience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not stop within %s and was killed", p.name, stopPatience)
	}
}
