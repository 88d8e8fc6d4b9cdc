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
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
)

// Members of _meta: keyMeta carries the idempotency key, assertionMeta the assertion.
const (
	keyMeta       = "io.github.perdure/idempotencyKey"
	assertionMeta = "io.github.perdure/assertion"
)

// tool is a tool of a server, without the guard. It is immutable and safe for concurrent use.
type tool struct {
	server     *Server
	remoteName string // the server's name of the tool
	spec       tools.Spec
}

// Spec implements [tools.Tool].
func (t *tool) Spec() tools.Spec { return t.spec }

// Origin returns where the server is declared, see [tools.NewRegistry].
func (t *tool) Origin() string { return t.server.cfg.Origin }

// Call implements [tools.Tool]. It blocks until the server responds, ctx ends, or the Server stops.
func (t *tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Stop cancels active calls with errStopped as the cause.
	defer context.AfterFunc(t.server.life, func() { cancel(errStopped) })()
	t.server.renew(ctx)
	session, token, watched := t.server.begin(tools.Report(ctx), t)
	if session == nil {
		return tools.Result{}, t.unavailableError(egress.Unreached, "the server is not connected, and nothing was done", nil)
	}
	params := &mcp.CallToolParams{Name: t.remoteName, Arguments: call.Arguments, Meta: mcp.Meta{}}
	if call.IdempotencyKey != "" {
		params.Meta[keyMeta] = call.IdempotencyKey
	}
	params.SetProgressToken(token)
	setTrace(ctx, params)
	result, err := t.send(ctx, cancel, session, call, params)
	redactor := t.server.secrets() // of this connection: the next one may have other secrets
	t.server.finish(token, watched)
	// An older server raises a question through the cause of ctx, see elicit.
	raised, isQuestion := errors.AsType[*tools.Raised](errors.Join(err, context.Cause(ctx)))
	switch {
	case isQuestion:
		return tools.Result{}, raised
	case errors.As(err, new(*assertionError)):
		failed := tools.Failed(t.spec.Name + " failed: " + err.Error())
		failed.Cause = err
		return failed, nil
	case errors.As(err, new(*unsupportedQuestionError)):
		return tools.Failed(redactor.Text(t.spec.Name + " failed: " + err.Error())), nil
	case err == nil:
		return redactor.Result(resultOf(result)), nil
	case errors.Is(context.Cause(ctx), errStopped):
		return tools.Result{}, t.unavailableError(egress.Broken, "the worker stopped", err)
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	}
	// The server has rejected the call, so a repetition would be rejected as well.
	if refusal, ok := refusalOf(err); ok {
		failed := tools.Failed(redactor.Text(fmt.Sprintf("%s failed: %s", t.spec.Name, refusal)))
		failed.Cause = err
		return failed, nil
	}
	failure, reason := t.server.dialer.explain(err)
	if failure == egress.Refused {
		failed := tools.Failed(t.spec.Name + " failed: " + reason)
		failed.Cause = err
		return failed, nil
	}
	return tools.Result{}, t.unavailableError(failure, reason, err)
}

// send makes the call. It returns a *tools.Raised error if the server asks a question, and a
// *unsupportedQuestionError if the question cannot be asked. cancel must cancel ctx.
func (t *tool) send(ctx context.Context, cancel context.CancelCauseFunc, session *mcp.ClientSession, call tools.Call, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	if err := addAnswers(ctx, params); err != nil {
		return nil, asUnsupportedQuestion(err)
	}
	done, err := t.server.reserve(ctx, cancel, session)
	if err != nil {
		return nil, err
	}
	defer done()
	// The call may have waited, so its assertion is made last.
	if err := t.setAssertion(call, params); err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, params)
	if questionErr, ok := errors.AsType[*tools.QuestionError](context.Cause(ctx)); ok {
		return nil, asUnsupportedQuestion(questionErr)
	}
	if err != nil || !result.NeedsInput() {
		return result, err
	}
	if !t.server.cfg.Elicitation {
		return nil, asUnsupportedQuestion(errors.New("elicitation is not set in its definition"))
	}
	return nil, asUnsupportedQuestion(t.server.raiseQuestion(ctx, result))
}

// setAssertion adds the assertion of the call, if the worker signs any. The error is an
// *assertionError.
func (t *tool) setAssertion(call tools.Call, params *mcp.CallToolParams) error {
	if t.server.sign == nil {
		return nil
	}
	token, err := t.server.sign(assertion.Subject{Tool: t.spec.Name, Call: call, Audience: t.server.cfg.audience(), Timeout: t.spec.Timeout})
	if err != nil {
		return &assertionError{err}
	}
	params.Meta[assertionMeta] = token
	return nil
}

// assertionError is the error of a call that was not made, because it has no assertion.
type assertionError struct{ err error }

// Error implements error.
func (e *assertionError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *assertionError) Unwrap() error { return e.err }

// unsupportedQuestionError is the error of a server's question that the user cannot be asked. The
// model receives it as a failure.
type unsupportedQuestionError struct{ err error }

// Error implements error.
func (e *unsupportedQuestionError) Error() string {
	return "the server asks an unsupported question: " + e.err.Error()
}

// Unwrap returns the cause.
func (e *unsupportedQuestionError) Unwrap() error { return e.err }

// asUnsupportedQuestion returns a *tools.Raised error unchanged, and wraps any other error in a
// *unsupportedQuestionError.
func asUnsupportedQuestion(err error) error {
	if _, ok := errors.AsType[*tools.Raised](err); ok {
		return err
	}
	return &unsupportedQuestionError{err}
}

// errStopped is the cause of the ctx of calls that Stop cancels.
var errStopped = errors.New("mcptool: the server is stopped")

// unavailableError returns the error of a call without an outcome. Its text for the model says if
// the call may have taken effect.
func (t *tool) unavailableError(failure egress.Failure, reason string, err error) error {
	text := t.spec.Name + " failed: " + reason
	if failure == egress.Broken && !t.spec.Idempotent {
		text += "; the call may have taken effect"
	}
	unavailable := &tools.UnavailableError{Text: text, Err: err}
	if status := (*statusError)(nil); errors.As(err, &status) {
		unavailable.RetryAfter = status.retryAfter
	}
	return unavailable
}

// Codes that the SDK uses in a jsonrpc.Error for calls without a response.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// refusalOf returns the message of a JSON-RPC error response, such as for an unknown tool or
// invalid arguments. It returns false if err is not one.
func refusalOf(err error) (reason string, ok bool) {
	var rpcErr *jsonrpc.Error
	if !errors.As(err, &rpcErr) {
		return "", false
	}
	switch rpcErr.Code {
	case codeClientClosing, codeServerClosing, codeRejected:
		return "", false
	}
	return rpcErr.Message, true
}

// compact encodes v as JSON without escapes for HTML.
func compact(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // cannot fail: decoded from JSON
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// setTrace adds the trace context to the _meta of a call, under the keys that MCP reserves for it.
// Headers could not carry it, because a program receives none.
func setTrace(ctx context.Context, params *mcp.CallToolParams) {
	trace := egress.TraceContext{}
	otel.GetTextMapPropagator().Inject(ctx, trace)
	for key, value := range trace {
		params.Meta[key] = value
	}
}
