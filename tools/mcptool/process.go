package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools/internal/secrets"
)

const (
	// grace is how long a program may take to end after its input is closed, and again after it is
	// told to.
	grace = time.Second
	// drain is how long the last output of a program is read.
	drain = time.Second
)

// program is a server that this process starts.
type program struct {
	path   string
	args   []string
	env    secrets.Texts
	secret secrets.Lookup
	logger *slog.Logger
}

// usual are the variables of the worker that a program gets.
var usual = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}

func (p *program) dial(context.Context) (*link, error) {
	variables, redactor, err := p.env.Fill(p.secret)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path) //nolint:gosec,noctx // the operator's command; stop ends it
	cmd.Args = p.args
	for _, name := range usual {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
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

func (p *program) explain(error) (egress.Failure, string) {
	return egress.Broken, "the server's program ended before it answered"
}

func (p *program) redactor() secrets.Redactor {
	_, redactor, _ := p.env.Fill(p.secret) // without its secrets there is no connection
	return redactor
}

// process is a running program.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File // the worker's ends
	exited        chan struct{}
}

// start starts a command. Its pipes do not belong to package exec, which would close them before
// the last output is read.
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
		_ = cmd.Wait() // its standard error says how it ended
		// A process that it has started may hold the pipe open.
		_ = stdout.SetReadDeadline(time.Now().Add(drain))
	}()
	return p, nil
}

// stop ends the program: it closes its input, then asks it to end, then kills it.
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
