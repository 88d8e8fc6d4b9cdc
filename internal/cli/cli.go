package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// defaultURL is the address of perdure dev with its default flags.
const defaultURL = "http://127.0.0.1:8080"

// Commands returns all commands except dev and its flags. environ has the form of os.Environ.
func Commands(environ []string) []*cobra.Command {
	e := &environment{variables: environ}
	list := []*cobra.Command{
		e.runCommand(), e.tailCommand(), e.traceCommand(), e.threadsCommand(), e.auditCommand(), e.holdCommand(), e.approvalsCommand(), e.approveCommand(), e.rejectCommand(), e.answerCommand(),
		e.waitsCommand(), e.eventCommand(),
		e.cancelCommand(), e.steerCommand(), e.pauseCommand(), e.resumeCommand(), e.agentsCommand(), e.schedulesCommand(), e.fileCommand(), e.quotasCommand(), e.usageCommand(), e.systemCommand(), e.subjectsCommand(),
	}
	for _, cmd := range list {
		e.flags(cmd)
	}
	return append(list, newCommand(), e.versionCommand())
}

// Execute runs the command line of the process. It writes an error to standard error, and returns
// the exit code, see exit.go.
func Execute(ctx context.Context, root *cobra.Command) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started { // cobra has refused the command line
		err = usage(fmt.Errorf("%w\nTry: %s --help", err, cmd.CommandPath()))
	}
	code := exitCode(err)
	if code == 0 || code == exitInterrupted || errors.Is(err, errReported) {
		return code
	}
	fmt.Fprintln(root.ErrOrStderr(), "perdure:", onTerminal(err.Error()))
	return code
}

// errReported is the error of a command that has already written its message.
var errReported = errors.New("see above")

// exitWith returns an error that ends the command with an exit code and without a further message.
func exitWith(code int) error { return &exitError{code, errReported} }

// environment is what all commands share: the environment variables, and the common flags after
// cobra has parsed them.
type environment struct {
	variables []string

	url, subject, roles, tokenFile string
	json                           bool
	retryWindow                    time.Duration
}

// flags adds the common flags to a command and its subcommands.
func (e *environment) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&e.url, "url", "", "the base URL of the server; default $PERDURE_URL, else "+defaultURL)
	f.StringVar(&e.tokenFile, "token-file", "", "file with a token or API key; default: the token in $PERDURE_TOKEN")
	f.StringVar(&e.subject, "subject", "", "your subject, for servers with PERDURE_AUTH=none; default $PERDURE_SUBJECT")
	f.StringVar(&e.roles, "roles", "", "your roles, separated by commas, for servers with PERDURE_AUTH=none; default $PERDURE_ROLES")
	f.DurationVar(&e.retryWindow, "retry-window", 5*time.Minute, "how long to try to reconnect after the connection is lost")
	f.BoolVar(&e.json, "json", false, "print JSON: one document, or one on each line of a stream")
}

// getenv returns an environment variable; "" = it is not set.
func (e *environment) getenv(name string) string {
	for _, v := range e.variables {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// flagOrVariable returns the value of a flag, or of an environment variable if the flag is empty.
func (e *environment) flagOrVariable(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return e.getenv(variable)
}

// client returns a client for the server of the flags and the environment. It reports lost
// connections to standard error.
func (e *environment) client(cmd *cobra.Command) (*client.Client, error) {
	return e.newClient(client.Config{RetryWindow: e.retryWindow, OnRetry: reportReconnect(cmd.ErrOrStderr())})
}

// newClient completes config with the URL, the token and the headers of the caller.
func (e *environment) newClient(config client.Config) (*client.Client, error) {
	token, err := e.token()
	if err != nil {
		return nil, err
	}
	config.Token = token
	if config.URL = e.flagOrVariable(e.url, "PERDURE_URL"); config.URL == "" {
		config.URL = defaultURL
	}
	if config.RetryWindow == 0 { // --retry-window 0 means no retries; in client.Config 0 means the default
		config.RetryWindow = -1
	}
	config.Header = http.Header{"Perdure-Channel": {"cli"}} // the audit records it with decisions
	if subject := e.flagOrVariable(e.subject, "PERDURE_SUBJECT"); subject != "" {
		config.Header.Set("X-Forwarded-User", subject)
	}
	if roles := e.flagOrVariable(e.roles, "PERDURE_ROLES"); roles != "" {
		config.Header.Set("X-Forwarded-Groups", roles)
	}
	c, err := client.New(config)
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}

// token returns the caller's token, from the environment or --token-file. There is no flag for the
// token itself: other users of the machine can read command lines.
func (e *environment) token() (string, error) {
	if e.tokenFile == "" {
		return e.getenv("PERDURE_TOKEN"), nil
	}
	text, err := os.ReadFile(e.tokenFile)
	if err != nil {
		return "", usage(fmt.Errorf("--token-file: %w", err))
	}
	return strings.TrimSpace(string(text)), nil
}

// reportReconnect returns a client.Config.OnRetry that reports a lost connection once, not for each
// attempt.
func reportReconnect(to io.Writer) func(error, time.Duration) {
	var last time.Time
	return func(err error, pause time.Duration) {
		now := time.Now()
		if now.After(last) {
			fmt.Fprintf(to, "\nThe connection is lost (%s), reconnecting …\n", onTerminal(err.Error()))
		}
		last = now.Add(pause + 5*time.Second)
	}
}
