package cli

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// runOptions are the flags of "perdure run".
type runOptions struct {
	thread, run, onBusy, state string
	revision, output           string
	files                      []string
	quiet, wait, cancel        bool
}

// runCommand returns "run".
func (e *environment) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run AGENT [TEXT]",
		Short: "Send a message to an agent and show the run",
		Long: `Send a message to an agent and show the run.

The answer goes to standard output, everything else to standard error. If TEXT is -, it is read from standard input.
The result of an agent with an output follows the answer, unless the answer is the result. With -q it takes the place of the answer.
With --output json, standard output has nothing but the result of the run.
Without TEXT the agent continues the conversation of --thread, for instance of a fork.
After Ctrl-C the run continues, and the command prints how to show it again. If the run waits for a decision, the command
prompts for it on a terminal; without a terminal it ends with exit code 3. If the run waits for a time or an event, the command
waits as well on a terminal; without a terminal it ends with exit code 3, too.`,
		Example: `  perdure run demo "What is 12*7?"
  perdure run demo --file photo.jpg "What is in this picture?"
  git diff | perdure run reviewer - > review.md
  perdure run extractor - --output json < mail.txt | jq .total`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: e.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if len(o.files) > 0 {
					return usage(errors.New("write a TEXT for the message that has the files"))
				}
				if o.thread == "" {
					return usage(errors.New("write a TEXT, or name the thread to continue with --thread"))
				}
				return e.run(cmd, args[0], nil, o)
			}
			if len(o.files) > 0 && o.run != "" {
				return usage(errors.New("--run cannot be combined with --file: each upload is another file, so the input would not be the same"))
			}
			text, err := textArgument(cmd, args[1])
			if err != nil {
				return err
			}
			return e.run(cmd, args[0], &text, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.thread, "thread", "", "the thread to continue; default: a new one")
	f.StringVar(&o.run, "run", "", "the ID of the run; the same command again shows the same run")
	f.StringVar(&o.revision, "revision", "", "run this revision of the agent, published or a draft, instead of the current one")
	f.StringArrayVar(&o.files, "file", nil, "upload this file, and attach it to the message; may be repeated")
	f.StringVar(&o.state, "state", "", "JSON that replaces the thread's state")
	f.StringVar(&o.onBusy, "on-busy", "reject", "if another run of the thread is active: reject, enqueue or interrupt")
	f.StringVar(&o.output, "output", outputText, "what standard output has: text, the answer, or json, the result")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show only the result, or the answer of a run without one; and why a run failed, or for what time or event it waits")
	f.BoolVar(&o.wait, "wait", false, "if the run waits for a decision, a time or an event, wait until it continues")
	f.BoolVar(&o.cancel, "cancel-on-interrupt", false, "cancel the run on Ctrl-C")
	completeFlag(cmd, "thread", e.completeThreads)
	completeWords(cmd, "on-busy", "reject", "enqueue", "interrupt")
	completeWords(cmd, "output", outputText, outputJSON)
	return cmd
}

// Values of --output.
const (
	outputText = "text"
	outputJSON = "json"
)

// run sends the message (text nil = none) and shows the run. While a run ends with interrupts and
// they are decided, it shows the run that continues. The error has the exit code of the last run.
func (e *environment) run(cmd *cobra.Command, agent string, text *string, o runOptions) error {
	input, err := o.input(text)
	switch {
	case err != nil:
		return err
	case o.output != outputText && o.output != outputJSON:
		return usage(fmt.Errorf("--output must be text or json, not %q", o.output))
	case o.output == outputJSON && e.json:
		return usage(errors.New("--output json and --json exclude each other: --json prints events, which have the result"))
	}
	c, err := e.client(cmd)
	if err != nil {
		return err
	}
	if len(o.files) > 0 {
		if input.Messages[0], err = attach(cmd.Context(), c, input.Messages[0], o.files); err != nil {
			return err
		}
	}
	v := e.viewer(cmd, c, o.quiet)
	v.thread, v.run = input.ThreadID, input.RunID
	if o.output == outputJSON {
		v.hideAnswer()
	}
	ctx, stop := v.onInterrupt(cmd.Context(), o.cancel)
	defer stop()
	if err := v.watch(c.RunRevision(ctx, agent, o.revision, *input)); err != nil {
		return v.printContinuation(err)
	}
	for v.hasInterrupts() {
		continues, err := v.decideAll(ctx, cmd, o.wait)
		if err != nil {
			return v.printContinuation(err)
		}
		if !continues {
			break
		}
		if err := v.watchNext(ctx); err != nil {
			return v.printContinuation(err)
		}
	}
	if err := outcomeError(v.last); err != nil || o.output != outputJSON {
		return err
	}
	return printResultOf(cmd.OutOrStdout(), agent, v.last)
}

// printResultOf prints the result in the last event of a run, as JSON. A run without a result is an
// error.
func printResultOf(w io.Writer, agent string, last client.Event) error {
	result := last.Result()
	if result == nil {
		return fmt.Errorf("the run has no result: give the agent %s an output", oneLine(agent, maxQuotedChars))
	}
	return document(w, result)
}

// maxText bounds a text from standard input, in bytes.
const maxText = 8 << 20

// textArgument returns an argument, or the content of standard input for "-".
func textArgument(cmd *cobra.Command, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	all, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxText+1))
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	if len(all) > maxText {
		return "", usage(fmt.Errorf("standard input has more than %d bytes", maxText))
	}
	return string(all), nil
}

// newID returns a random ID that begins with kind.
func newID(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:16]) }

// messageID returns the ID of the message that starts a run. It depends on thread and run only: the
// same command with --run sends the same input, to which the server attaches. In a fork, a run with
// the same ID gets a message with another ID.
func messageID(thread, run string) string {
	sum := sha256.Sum256([]byte(thread + "\x00" + run)) // no ID has a NUL
	return "msg-" + hex.EncodeToString(sum[:12])
}

// input returns the input of the run with a text (nil = no new message), and with new IDs for a
// thread and a run that the flags do not name.
func (o runOptions) input(text *string) (*agui.RunAgentInput, error) {
	if !slices.Contains([]string{"reject", "enqueue", "interrupt"}, o.onBusy) {
		return nil, usage(fmt.Errorf("--on-busy must be reject, enqueue or interrupt, not %q", o.onBusy))
	}
	if o.state != "" && !json.Valid([]byte(o.state)) {
		return nil, usage(errors.New("--state is not JSON"))
	}
	input := &agui.RunAgentInput{ThreadID: o.thread, RunID: o.run, ProtocolVersion: agui.Version}
	if input.ThreadID == "" {
		input.ThreadID = newID("thread")
	}
	if input.RunID == "" {
		input.RunID = newID("run")
	}
	if text != nil {
		input.Messages = []agui.Message{userMessage(messageID(input.ThreadID, input.RunID), *text)}
	}
	if o.state != "" {
		input.State = json.RawMessage(o.state)
	}
	props, err := json.Marshal(map[string]any{"perdure": map[string]string{"history": "append", "onBusy": o.onBusy}})
	input.ForwardedProps = props
	return input, err
}

// userMessage returns a user message with a text.
func userMessage(id, text string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}
}

// cancelTimeout bounds the request to cancel after Ctrl-C.
const cancelTimeout = 30 * time.Second
