package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools"
)

// keyMeta is where a server finds the key that is the same in all attempts of a call.
const keyMeta = "io.github.perdure/idempotencyKey"

// tool is one tool of a server.
type tool struct {
	server *Server
	own    string // what the server calls it
	spec   tools.Spec
}

func (t *tool) Spec() tools.Spec { return t.spec }

func (t *tool) Origin() string { return t.server.cfg.Origin }

// Call implements [tools.Tool].
func (t *tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.server.life, func() { cancel(errStopped) })()
	session, token, watched := t.server.begin(tools.Report(ctx), t)
	if session == nil {
		return tools.Result{}, t.unavailable(egress.Unreached, "the server is away; nothing was done", nil)
	}
	params := &mcp.CallToolParams{Name: t.own, Arguments: call.Arguments, Meta: mcp.Meta{}}
	if call.IdempotencyKey != "" {
		params.Meta[keyMeta] = call.IdempotencyKey
	}
	params.SetProgressToken(token)
	setTrace(ctx, params)
	result, err := t.make(ctx, cancel, session, params)
	t.server.finish(token, watched)
	redactor := t.server.secrets()
	raised, asks := errors.AsType[*tools.Raised](errors.Join(err, context.Cause(ctx)))
	switch {
	case asks:
		return tools.Result{}, raised
	case errors.As(err, new(*misaskedError)):
		return tools.Failed(redactor.Text(t.spec.Name + " failed: " + err.Error())), nil
	case err == nil:
		return redactor.Result(resultOf(result)), nil
	case errors.Is(context.Cause(ctx), errStopped):
		return tools.Result{}, t.unavailable(egress.Broken, "the worker stopped", err)
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	}
	if refusal, ok := refusalOf(err); ok {
		failed := tools.Failed(redactor.Text(fmt.Sprintf("%s failed: %s", t.spec.Name, refusal)))
		failed.Cause = err
		return failed, nil
	}
	failure, words := t.server.dialer.explain(err)
	if failure == egress.Refused {
		failed := tools.Failed(t.spec.Name + " failed: " + words)
		failed.Cause = err
		return failed, nil
	}
	return tools.Result{}, t.unavailable(failure, words, err)
}

// make makes the call. It fails with a *tools.Raised if the server asks.
func (t *tool) make(ctx context.Context, cancel context.CancelCauseFunc, session *mcp.ClientSession, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	if err := addAnswers(ctx, params); err != nil {
		return nil, unwrapQuestion(err)
	}
	done, err := t.server.alone(ctx, cancel, session)
	if err != nil {
		return nil, err
	}
	defer done()
	result, err := session.CallTool(ctx, params)
	if bad, ok := errors.AsType[*tools.QuestionError](context.Cause(ctx)); ok {
		return nil, unwrapQuestion(bad)
	}
	if err != nil || !result.NeedsInput() {
		return result, err
	}
	if !t.server.cfg.Elicitation {
		return nil, unwrapQuestion(errors.New("it may not, since elicitation is not set"))
	}
	return nil, unwrapQuestion(t.server.raiseQuestion(ctx, result))
}

// misaskedError says that a server asks what nobody can be asked.
type misaskedError struct{ err error }

func (e *misaskedError) Error() string {
	return "the server wants more from the user: " + e.err.Error()
}

func (e *misaskedError) Unwrap() error { return e.err }

// unwrapQuestion leaves a question that was raised as it is.
func unwrapQuestion(err error) error {
	if _, ok := errors.AsType[*tools.Raised](err); ok {
		return err
	}
	return &misaskedError{err}
}

var errStopped = errors.New("mcptool: the server is stopped")

func (t *tool) unavailable(failure egress.Failure, words string, err error) error {
	text := t.spec.Name + " failed: " + words
	if failure == egress.Broken && !t.spec.Idempotent {
		text += "; what it was asked to do may have happened all the same"
	}
	away := &tools.UnavailableError{Text: text, Err: err}
	if status := (*statusError)(nil); errors.As(err, &status) {
		away.RetryAfter = status.retryAfter
	}
	return away
}

// Codes that the SDK uses for what is no answer of the server's.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// refusalOf returns the words of a server that answered with an error of the protocol: it knows no
// such tool, or not these arguments.
func refusalOf(err error) (words string, ok bool) {
	var answered *jsonrpc.Error
	if !errors.As(err, &answered) {
		return "", false
	}
	switch answered.Code {
	case codeClientClosing, codeServerClosing, codeRejected:
		return "", false
	}
	return answered.Message, true
}

// compact is JSON without the escapes that only HTML needs.
func compact(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // it was JSON when it came
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// setTrace puts the trace context of a call into its _meta, under the keys that MCP reserves for it: a program has no headers.
func setTrace(ctx context.Context, params *mcp.CallToolParams) {
	trace := egress.TraceContext{}
	otel.GetTextMapPropagator().Inject(ctx, trace)
	for key, value := range trace {
		params.Meta[key] = value
	}
}
