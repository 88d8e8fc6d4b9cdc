package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// interrupts returns the interrupts with which a run has ended; nil if e is not such an end.
func interrupts(e client.Event) []agui.Interrupt {
	if end, ok := e.Event.(*agui.RunFinished); ok && end.Outcome != nil {
		return end.Outcome.Interrupts
	}
	return nil
}

// approveTool is the tool name in interrupts of approve steps and of limits. No tool is called: the
// interrupt's message is the question.
const approveTool = "approve"

// hasMembers reports whether a JSON object is not empty. It is true for invalid JSON.
func hasMembers(object string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(object), &members) != nil || len(members) > 0
}

// questions asks the user on a terminal. It is used by one goroutine.
type questions struct {
	out io.Writer
	in  *bufio.Scanner
}

// newQuestions returns questions that reads lines of up to 1 MiB from in.
func newQuestions(in io.Reader, out io.Writer) *questions {
	q := &questions{out: out, in: bufio.NewScanner(in)}
	q.in.Buffer(nil, 1<<20)
	return q
}

// readLine asks for one line, and returns it without surrounding space. It fails with io.EOF at the
// end of input (Ctrl-D), or with the cause of ctx. A read from a terminal cannot be interrupted:
// after ctx has ended, a goroutine still reads, and readLine must not be called again.
func (q *questions) readLine(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.out, prompt)
	got := make(chan error, 1)
	go func() {
		if q.in.Scan() {
			got <- nil
			return
		}
		got <- io.EOF
	}()
	select {
	case err := <-got:
		return strings.TrimSpace(q.in.Text()), err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// The choices that the terminal offers for a call, and for a question.
const (
	choicesOfCall     = "[y]es, [n]o, [s]ame arguments from now on, [t]ool from now on, [e]dit, [a]nswer for the tool, [l]ater? "
	choicesOfQuestion = "[a]nswer, [n]o, [l]ater? "
)

// askDecision asks for a decision about an interrupt. nil without an error leaves the interrupt
// open.
func (q *questions) askDecision(ctx context.Context, description string, i agui.Interrupt) (*client.Decision, error) {
	fmt.Fprintf(q.out, "\n%s\n", description)
	choices, contentPrompt := choicesOfCall, "The tool's result: "
	if isQuestion(i.Reason) {
		choices, contentPrompt = choicesOfQuestion, answerPrompt(i.ResponseSchema)
	}
	for {
		choice, err := q.readLine(ctx, choices)
		if err == io.EOF { //nolint:errorlint // of our own, as it is
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		choice = strings.ToLower(choice)
		if isQuestion(i.Reason) && !slices.Contains([]string{"a", "answer", "n", "no", "reject", "l", "later"}, choice) {
			continue
		}
		switch choice {
		case "y", "yes", "approve":
			return &client.Decision{Decision: client.Approve}, nil
		case "s", "same":
			return &client.Decision{Decision: client.Approve, Remember: client.RememberArguments}, nil
		case "t", "tool":
			return &client.Decision{Decision: client.Approve, Remember: client.RememberTool}, nil
		case "n", "no", "reject":
			reason, err := q.readLine(ctx, "Why? ")
			return &client.Decision{Decision: client.Reject, Reason: reason}, err
		case "e", "edit":
			args, err := q.readLine(ctx, "All arguments, as JSON: ")
			if err == nil && !isObject(args) {
				fmt.Fprintln(q.out, "The arguments must be a JSON object.")
				continue
			}
			return &client.Decision{Decision: client.Edit, Args: json.RawMessage(args)}, err
		case "a", "answer":
			content, err := q.readLine(ctx, contentPrompt)
			return &client.Decision{Decision: client.Answer, Content: answerOf(i.Reason, i.ResponseSchema, content)}, err
		case "l", "later":
			return nil, nil
		}
	}
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}
