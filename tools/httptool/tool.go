package httptool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
)

// Tool is a [tools.Tool] whose calls are HTTP requests. It is immutable and safe for concurrent
// use; it needs no closing, because it keeps no idle connections. It relies on a guard
// ([tools.Guard]) that validates arguments and sets the timeout.
type Tool struct {
	cfg          Config
	url          *urlTemplate
	host         string         // of the URL, for messages
	headers      secrets.Texts  // without the secrets filled in
	lookupSecret secrets.Lookup // nil in a process that makes no calls
	client       *http.Client
	audience     string
	sign         func(assertion.Subject) (string, error) // nil = requests have no assertion
}

// New makes a tool. The error is a *ConfigError, also if a secret is missing. It does not connect.
func New(cfg Config, env Environment) (*Tool, error) {
	t := &Tool{cfg: cfg, lookupSecret: env.Secret, sign: env.Sign}
	var err error
	if t.url, err = parseURL(cfg.URL); err != nil {
		return nil, err
	}
	if t.headers, err = parseHeaders(cfg.Headers, env.Secret); err != nil {
		return nil, err
	}
	if err := checkArguments(t.url, cfg.Parameters); err != nil {
		return nil, err
	}
	t.host, t.audience = t.url.base.Host, cmp.Or(cfg.Audience, assertion.Origin(t.url.base))
	hosts := egress.Hosts{egress.HostOf(t.url.base)}
	for _, host := range cfg.AllowedHosts {
		if !hostRule.MatchString(host) {
			return nil, configErrorf("http.allowedHosts", "has %.80q, which must be host or host:port", host)
		}
		hosts = append(hosts, host)
	}
	transport := egress.Transport(egress.PolicyFor(env.AllowPrivate))
	// A new connection per request, see the package documentation.
	transport.DisableKeepAlives = true
	t.client = &http.Client{
		Transport:     egress.Traced(transport),
		CheckRedirect: egress.Redirects(hosts, append(slices.Collect(maps.Keys(cfg.Headers)), idempotencyHeader, assertionHeader)),
	}
	return t, nil
}

// Call implements [tools.Tool]. It looks up the secrets for each call, so a changed secret takes
// effect at once.
func (t *Tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	headers, redactor, err := t.headers.FillFor(callerOf(call), t.lookupSecret)
	if err != nil {
		return failed(err.Error(), err), nil
	}
	req, err := t.request(ctx, call, headers)
	if err != nil {
		return failed(err.Error(), err), nil
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return t.resultForTransportError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing depends on the error
	result, err := t.readAnswer(ctx, resp, redactor)
	// A broken read after the end of ctx is the end of ctx, not an unavailable server.
	if err != nil && ctx.Err() != nil {
		return tools.Result{}, ctx.Err()
	}
	return result, err
}

// failed returns a failure with its cause.
func failed(text string, cause error) tools.Result {
	result := tools.Failed(text)
	result.Cause = cause
	return result
}

// request builds the request of a call. Its errors are for the model.
func (t *Tool) request(ctx context.Context, call tools.Call, headers map[string]string) (*http.Request, error) {
	args := arguments{}
	if len(call.Arguments) > 0 {
		if err := json.Unmarshal(call.Arguments, &args); err != nil {
			return nil, argumentErrorf("the arguments are not a JSON object")
		}
	}
	encoded, err := t.encodeArguments(args.without(t.url.names()))
	if err != nil {
		return nil, err
	}
	filled, err := args.withCaller(t.url.names(), callerOf(call))
	if err != nil {
		return nil, err
	}
	u, err := t.url.fill(filled, encoded.query)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, t.cfg.Method, u.String(), encoded.body)
	if err != nil {
		return nil, argumentErrorf("the arguments do not make a valid URL")
	}
	// A second line of defense: no argument should be able to change the host.
	if egress.HostOf(req.URL) != egress.HostOf(t.url.base) {
		return nil, argumentErrorf("the arguments would change the host")
	}
	req.Header.Set("User-Agent", "perdure")
	req.Header.Set("Accept", "application/json, "+questionType+", text/*;q=0.9, */*;q=0.5")
	if encoded.contentType != "" {
		req.Header.Set("Content-Type", encoded.contentType)
	}
	if call.IdempotencyKey != "" {
		req.Header.Set(idempotencyHeader, headerKey(call.IdempotencyKey))
	}
	if err := setAnswers(req, call.IdempotencyKey, call.Answers); err != nil {
		return nil, err
	}
	if err := t.setAssertion(req, call); err != nil {
		return nil, err
	}
	// Headers of the definition are last. They cannot override reserved ones, see parseHeaders.
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return req, nil
}

// callerOf returns for whom a call is made.
func callerOf(call tools.Call) secrets.Caller {
	return secrets.Caller{Tenant: call.Run.Tenant, Subject: call.Run.Requester}
}

// setAssertion adds the assertion of the call, if the worker signs any.
func (t *Tool) setAssertion(req *http.Request, call tools.Call) error {
	if t.sign == nil {
		return nil
	}
	token, err := t.sign(assertion.Subject{Tool: t.cfg.Name, Call: call, Audience: t.audience, Timeout: cmp.Or(t.cfg.Timeout, tools.DefaultTimeout)})
	switch {
	case err != nil:
		return err
	case len(token) > maxAssertion:
		return fmt.Errorf("%s failed: the thread has too many contributors for the header %s: start another thread", t.cfg.Name, assertionHeader)
	}
	req.Header.Set(assertionHeader, token)
	return nil
}

// encodedArguments are the arguments of a call that its URL does not use: as a query, or as a body
// with its content type.
type encodedArguments struct {
	query       url.Values
	body        io.Reader
	contentType string
}

// encodeArguments encodes the arguments that the URL does not use.
func (t *Tool) encodeArguments(args arguments) (encodedArguments, error) {
	if t.sendsQuery() {
		query, err := args.form()
		return encodedArguments{query: query}, err
	}
	if t.cfg.Form {
		form, err := args.form()
		return encodedArguments{body: strings.NewReader(form.Encode()), contentType: "application/x-www-form-urlencoded"}, err
	}
	raw, err := json.Marshal(args)
	return encodedArguments{body: strings.NewReader(string(raw)), contentType: "application/json"}, err
}

// maxKey is the maximum length of an Idempotency-Key, in bytes.
const maxKey = 255

// headerKey returns an idempotency key in a form that is valid in a header: the key itself, or its
// hash. Keys contain IDs that clients choose.
func headerKey(key string) string {
	unsafe := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(key) <= maxKey && !strings.ContainsFunc(key, unsafe) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// resultForTransportError returns the outcome of a request without a response: the end of ctx, a
// failure if no attempt can succeed, or an [tools.UnavailableError].
func (t *Tool) resultForTransportError(ctx context.Context, err error) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, ctx.Err()
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err // the text of url.Error contains the arguments
	}
	failure, reason := egress.Explain(t.host, err)
	if failure == egress.Refused {
		return failed(t.cfg.Name+" failed: "+reason, err), nil
	}
	return tools.Result{}, t.unavailableError(failure, reason, err)
}

// unavailableError returns the error of a call without an outcome. Its text for the model says if
// the request may have taken effect.
func (t *Tool) unavailableError(failure egress.Failure, reason string, err error) error {
	text := t.cfg.Name + " failed: " + reason
	if failure == egress.Broken && !t.cfg.Idempotent {
		text += "; the call may have taken effect"
	}
	return &tools.UnavailableError{Text: text, Err: err}
}

// Spec implements [tools.Tool].
func (t *Tool) Spec() tools.Spec {
	s := tools.Spec{
		Name: t.cfg.Name, Description: t.cfg.Description, Parameters: t.cfg.Parameters,
		Timeout: t.cfg.Timeout, Idempotent: t.cfg.Idempotent, Attempts: t.cfg.Attempts, TaskQueue: t.cfg.TaskQueue,
	}
	if t.cfg.Sequential {
		s.Sequence = s.Name
	}
	return s
}

// Origin returns where the tool is declared, see [tools.NewRegistry].
func (t *Tool) Origin() string { return t.cfg.Origin }

// sendsQuery reports whether unused arguments become the query. A body of GET, HEAD and DELETE has
// no defined meaning (RFC 9110, section 9.3).
func (t *Tool) sendsQuery() bool {
	switch t.cfg.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return true
	}
	return false
}
