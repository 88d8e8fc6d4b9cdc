package approvalroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// LinkPath is the prefix of the routes of links. A link shows one decision about one interrupt to
// the person who has signed in. A link that names its approver is a capability: its holder can make
// the decision as this person, once, without signing in. GET only shows the decision, because mail
// programs and chats open links by themselves; POST decides. The path may be a secret, so it is
// neither traced nor logged.
const LinkPath = "/v1/links/"

// linkTTL is how long a link is valid by default. minLinkTTL and maxLinkTTL bound what a caller
// may choose.
const (
	linkTTL    = 24 * time.Hour
	minLinkTTL = time.Minute
	maxLinkTTL = 7 * 24 * time.Hour
)

// linkRequest is the body of makeLink. Decision is approve or reject. ExpiresIn is a duration such
// as 24h; "" = linkTTL.
type linkRequest struct {
	Decision string `json:"decision"`
	// Subject is the configured approver who decides by the link without signing in; "" = the person
	// signs in.
	Subject   string `json:"subject"`
	ExpiresIn string `json:"expiresIn"`
}

// makeLink serves POST /v1/threads/{thread}/approvals/{approval}/links: it creates a link that
// approves or rejects a call, and answers 201 with its URL and expiry. Nothing is stored: the
// signed token contains everything. It is bound to the digest of the call's arguments, so an edit
// in between makes it void. A question cannot have a link, because it needs an answer.
//
// makeLink checks that the approver may read the interrupt; whether the approver may decide is
// checked when the link is used. Errors: 400 invalid_input, 403 forbidden, not_an_approver or
// not_by_requester, 404 unknown_approval, 409 decided, 410 expired, 422.
func (r *Routes) makeLink(c *gin.Context) error {
	ctx := c.Request.Context()
	thread, err := access.Address(ctx, request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	var body linkRequest
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	link, err := r.linkOf(ctx, body, time.Now())
	if err != nil {
		return err
	}
	link.Tenant, link.Thread, link.Approval = thread.Tenant, thread.ID, request.Segment(c, "approval")
	interrupt, err := r.findForLink(ctx, link)
	if err != nil {
		return err
	}
	if err := r.decisions.CheckOpen(ctx, thread, interrupt); err != nil {
		return err
	}
	if decisions.IsQuestion(&interrupt.Interrupt) {
		return decisions.InvalidAnswer("/decision", "must be on a tool call: a question needs an answer")
	}
	link.Args = interrupt.ArgsDigest() // readLink compares it
	auditing.Detail(ctx, "decision", link.Decision)
	auditing.Detail(ctx, "subject", link.Approver)
	token, err := r.inbox.Links.Token(link)
	if errors.Is(err, links.ErrTooLarge) {
		return problem.BadRequest("invalid_input", "/subject", "must be shorter: the link would be too long")
	}
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	return request.WriteJSON(c, http.StatusCreated, gin.H{"url": r.publicURL(c.Request) + LinkPath + token, "expiresAt": link.Expires.UTC().Truncate(time.Second)})
}

// linkOf validates a request for a link, and returns the link without its interrupt. A caller that
// the policies do not let make links for other people gets a 403 for other subjects than its own.
func (r *Routes) linkOf(ctx context.Context, body linkRequest, now time.Time) (links.Link, error) {
	p := request.Caller(ctx)
	l := links.Link{Tenant: p.Tenant, Decision: body.Decision, Approver: body.Subject, Issuer: p.Subject, Expires: now.Add(linkTTL)}
	if body.Decision != string(runs.DecisionApprove) && body.Decision != string(runs.DecisionReject) {
		return l, decisions.InvalidAnswer("/decision", `must be "approve" or "reject"`)
	}
	if body.ExpiresIn != "" {
		life, err := time.ParseDuration(body.ExpiresIn)
		if err != nil || life < minLinkTTL || life > maxLinkTTL {
			return l, problem.BadRequest("invalid_input", "/expiresIn", fmt.Sprintf("must be a duration from %s to %s, such as 24h", minLinkTTL, maxLinkTTL))
		}
		l.Expires = now.Add(life)
	}
	if body.Subject == "" {
		return l, nil
	}
	if err := request.CheckID("/subject", body.Subject); err != nil {
		return l, err
	}
	if body.Subject != p.Subject {
		if err := r.access.CheckTenant(ctx, policy.CreateLink); err != nil {
			return l, err
		}
	}
	if _, ok := r.principals.Find(principals.Approver, l.Tenant, l.Approver); !ok {
		p := decisions.NotConfigured(l.Approver)
		p.Pointer, p.Detail = "/subject", p.Detail+": add the person to the file of PERDURE_PRINCIPALS, or leave out subject, so that the person signs in"
		return l, p
	}
	return l, nil
}

// findForLink returns the interrupt of a link that the caller creates. The approver whom the link
// names must be able to read the interrupt, and the caller must not be able to decide by the link
// against the rule. Without a name the caller must be able to read it, or to make links for others.
func (r *Routes) findForLink(ctx context.Context, link links.Link) (*decisions.Interrupt, error) {
	if link.Approver == "" && r.access.CheckTenant(ctx, policy.CreateLink) == nil {
		return r.decisions.Find(ctx, threadOf(link), link.Approval)
	}
	person, err := r.personOf(ctx, link)
	if err != nil {
		return nil, err
	}
	interrupt, err := r.findFor(ctx, link, person)
	if err != nil || link.Approver == "" {
		return interrupt, err
	}
	return interrupt, r.decisions.CheckIssuer(decisionContext(ctx, link, person), threadOf(link), interrupt)
}

// publicURL returns the address of the API for clients, without a slash at its end: PublicURL, or
// else that of the request.
func (r *Routes) publicURL(req *http.Request) string {
	if r.inbox.PublicURL != "" {
		return r.inbox.PublicURL
	}
	u := url.URL{Scheme: "http", Host: req.Host}
	if req.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// showLink serves GET and HEAD /v1/links/{token}: a page that shows what the link decides, with a
// button that sends the POST. It changes nothing. A link that cannot decide gets a page with the
// reason, and the status of the problem.
func (r *Routes) showLink(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	link, person, interrupt, err := r.readLink(ctx, request.Segment(c, "token"))
	if err == nil {
		err = r.decisions.CheckOpen(ctx, threadOf(link), interrupt)
	}
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	page, err := linkPageOf(link, person.Subject, interrupt)
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	showLinkPage(c, http.StatusOK, page)
}

// verifyLink verifies a token. Errors: 404 unknown_link, 410 link_expired.
func (r *Routes) verifyLink(token string) (links.Link, error) {
	link, err := r.inbox.Links.Read(token)
	if errors.Is(err, links.ErrExpired) {
		return link, problem.New(http.StatusGone, "link_expired", "This link has expired.")
	}
	if err != nil {
		return link, unknownLink()
	}
	return link, nil
}

// unknownLink returns the 404 for an invalid link, or one of another tenant.
func unknownLink() *problem.Problem {
	return problem.New(http.StatusNotFound, "unknown_link", "This link is not valid.")
}

// admitLink returns middleware for the routes of links: a person who opens a link that names no
// approver has to sign in, as authenticate tells.
func (r *Routes) admitLink(authenticate gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if link, err := r.verifyLink(request.Segment(c, "token")); err == nil && link.Approver == "" {
			authenticate(c)
		}
	}
}

// readLink verifies a token, and returns its content, the person who decides and the interrupt.
// Errors: those of verifyLink and personOf, 410 link_used, and 404 unknown_approval if the interrupt
// is unknown or has other arguments than the link. A resolved interrupt is no error here: showLink
// checks it, and a decision by useLink may be a repetition.
func (r *Routes) readLink(ctx context.Context, token string) (link links.Link, person auth.Principal, interrupt *decisions.Interrupt, err error) {
	if link, err = r.verifyLink(token); err != nil {
		return link, person, nil, err
	}
	if person, err = r.personOf(ctx, link); err != nil {
		return link, person, nil, err
	}
	isUsed, err := r.inbox.Links.Used(ctx, link)
	if err != nil {
		return link, person, nil, err
	}
	if isUsed {
		p := problem.New(http.StatusGone, "link_used", "This link has been used.")
		p.Recorded = &decisions.DecisionReceipt{ID: link.Approval, Decision: link.Decision}
		return link, person, nil, p
	}
	interrupt, err = r.findFor(ctx, link, person)
	// The person has not seen these arguments.
	if err == nil && interrupt.Open && interrupt.ArgsDigest() != link.Args {
		err = decisions.UnknownApproval(link.Approval)
	}
	return link, person, interrupt, err
}

// findFor returns the interrupt of a link, if a person may read it. The error for an approver whom
// the link names, and whom nothing permits to decide, is 403 not_an_approver: it tells that the link
// names the wrong person, and nothing about the interrupt.
func (r *Routes) findFor(ctx context.Context, link links.Link, person auth.Principal) (*decisions.Interrupt, error) {
	interrupt, err := r.decisions.Find(ctx, threadOf(link), link.Approval)
	if err != nil {
		return nil, err
	}
	err = r.decisions.CheckReadable(auth.With(ctx, person), threadOf(link), interrupt)
	if denied, ok := errors.AsType[*policy.DeniedError](err); ok && link.Approver != "" && denied.Rule == policy.RuleNone {
		err = decisions.NotPermitted(link.Approver)
	}
	return interrupt, err
}

// personOf returns the principal that decides by a link: the approver whom it names, with the roles
// that the operator gives to the approver now, or else the caller. Errors: 403 not_an_approver, 404
// unknown_link for a caller of another tenant, 401.
func (r *Routes) personOf(ctx context.Context, link links.Link) (auth.Principal, error) {
	if link.Approver != "" {
		person, ok := r.principals.Find(principals.Approver, link.Tenant, link.Approver)
		if !ok {
			return person, decisions.NotConfigured(link.Approver)
		}
		return person, nil
	}
	person, err := request.Principal(ctx)
	if err == nil && person.Tenant != link.Tenant {
		err = unknownLink()
	}
	return person, err
}

// threadOf returns the thread of a link.
func threadOf(link links.Link) stream.Thread {
	return stream.Thread{Tenant: link.Tenant, ID: link.Thread}
}

// decisionContext returns the context of a decision that a person makes by a link.
func decisionContext(ctx context.Context, link links.Link, person auth.Principal) context.Context {
	return request.WithLink(auth.With(ctx, person), request.Link{
		Issuer: auth.Principal{Tenant: link.Tenant, Subject: link.Issuer}, NamesApprover: link.Approver != "",
	})
}

// useLink serves POST /v1/links/{token}: it makes the decision of the link, as its person, like any
// other decision. It answers with a page that tells the outcome.
func (r *Routes) useLink(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	link, person, _, err := r.readLink(ctx, request.Segment(c, "token"))
	var receipt decisions.DecisionReceipt
	if err == nil {
		ctx = request.WithRun(ctx, stream.Run{Thread: threadOf(link)}, "")
		c.Request = c.Request.WithContext(ctx)
		auditing.By(ctx, person)
		auditing.About(ctx, func(t *audit.Target) { t.Approval = link.Approval })
		auditing.Detail(ctx, "decision", link.Decision)
		auditing.Detail(ctx, "issuer", link.Issuer)
		receipt, err = r.decisions.Decide(decisionContext(ctx, link, person), threadOf(link), link.Approval, decisions.Request{Decision: link.Decision})
	}
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	if link.Approver != "" {
		// The decision comes before the note that the link was used: a crash in between must not lose
		// the decision. Without the note the link stays valid, but can only repeat its decision.
		if err := r.inbox.Links.Use(ctx, link); err != nil {
			r.finder.Logger.WarnContext(ctx, "the use of a link was not recorded", "error", err)
		}
	}
	showLinkPage(c, http.StatusOK, linkPage{Decision: link.Decision, Done: true, Missing: receipt.Missing, Before: receipt.Recorded != nil && receipt.Recorded.By != person.Subject})
}

// showRefusal answers with a page that tells why a link does not decide. People see it, so it is
// not a problem in JSON. It logs the cause of a 5xx.
func (r *Routes) showRefusal(c *gin.Context, err error) {
	p := problem.Of(err)
	problem.Keep(c, p)
	if p.Status >= http.StatusInternalServerError {
		r.finder.Logger.ErrorContext(c.Request.Context(), "a link failed", "error", err)
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	page := linkPage{Problem: p.Detail, Unknown: p.Status >= http.StatusInternalServerError}
	if recorded, ok := p.Recorded.(*decisions.DecisionReceipt); ok {
		page.Decision = recorded.Decision
	}
	showLinkPage(c, p.Status, page)
}
