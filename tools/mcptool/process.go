package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
)

// Delays while a program ends.
const (
	// grace is the time that a program has to exit after its standard input is closed, and again
	// after SIGTERM.
	grace = time.Second
	// drain is how long the remaining output of an exited program is read.
	drain = time.Second
)

// program is the [dialer] of a server that this process starts. Each connection starts the program
// once. Only given changes.
type program struct {
	path   string        // of the executable
	args   []string      // including the program's name
	env    secrets.Texts // without the secrets filled in
	secret secrets.Lookup
	logger *slog.Logger

	given atomic.Pointer[environment] // of the last start; nil = the program was not started yet
}

// environment is env with the secrets filled in. It is immutable.
type environment struct {
	variables map[string]string
	redactor  secrets.Redactor
}

// inheritedEnv are the variables of the worker's environment that a program inherits.
var inheritedEnv = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}

// dial implements [dialer]. It starts the program, whose standard input and output carry the
// messages.
func (p *program) dial(context.Context) (*link, error) {
	variables, redactor, err := p.env.Fill(p.secret)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path) //nolint:gosec,noctx // the operator's command; stop ends it
	cmd.Args = p.args
	for _, name := range inheritedEnv {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	p.given.Store(&environment{variables, redactor})
	noise := newStderr(p.logger, redactor)
	cmd.Stderr = noise
	cmd.WaitDelay = drain
	detach(cmd)
	running, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.path, err)
	}
	return &link{
		transport: &mcp.IOTransport{Reader: running.stdout, Writer: running.stdin, MaxLineLength: maxMessage},
		close:     running.stop,
		release:   noise.flush,
	}, nil
}

// explain implements [dialer]. The call may have taken effect before the program ended.
func (p *program) explain(error) (egress.Failure, string) {
	return egress.Broken, "the program of the server ended before the answer"
}

// redactor implements [dialer]. The program knows the secrets that it was given, which can be older
// than the present ones.
func (p *program) redactor() secrets.Redactor {
	if given := p.given.Load(); given != nil {
		return given.redactor
	}
	return secrets.Redactor{}
}

// isOutdated implements [dialer]. While a secret is missing, the program keeps its former one.
func (p *program) isOutdated() bool {
	given := p.given.Load()
	variables, _, err := p.env.Fill(p.secret)
	return given != nil && err == nil && !maps.Equal(variables, given.variables)
}

// process is a running program.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File      // the worker's ends of the pipes
	exited        chan struct{} // closed after Wait has returned
}

// start starts a command with pipes as standard input and output. It does not use the pipes of
// package exec: Cmd.Wait would close them before the last output is read.
func start(cmd *exec.Cmd) (*process, error) {
	theirStdin, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, theirStdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirStdin.Close(), stdin.Close())
	}
	cmd.Stdin, cmd.Stdout = theirStdin, theirStdout
	err = cmd.Start()
	err = errors.Join(err, theirStdin.Close(), theirStdout.Close())
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close())
	}
	p := &process{cmd: cmd, stdin: stdin, stdout: stdout, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the program's standard error describes a failure
		// A child process of the program can keep the pipe open.
		_ = stdout.SetReadDeadline(time.Now().Add(drain))
	}()
	return p, nil
}

// stop ends the program: it closes the standard input, then sends SIGTERM, then SIGKILL (MCP,
// "Lifecycle", shutdown of stdio). It blocks until the program has exited.
func (p *process) stop() {
	_ = p.stdin.Close() // it may be closed already
	for _, signal := range []func(*exec.Cmd){terminate, kill} {
		timer := time.NewTimer(grace)
		select {
		case <-p.exited:
			timer.Stop()
			return
		case <-timer.C:
			signal(p.cmd)
		}
	}
	<-p.exited
}
