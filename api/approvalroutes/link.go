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
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// LinkPath is the prefix of the routes of links. A link is a capability: its holder can make one
// decision as one person, once. GET only shows the decision, because mail programs and chats open
// links by themselves; POST decides. The path is a secret, so it is neither traced nor logged.
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
	// Subject and Roles are those of the person who decides by the link; empty = the caller's.
	Subject   string   `json:"subject"`
	Roles     []string `json:"roles"`
	ExpiresIn string   `json:"expiresIn"`
}

// makeLink serves POST /v1/threads/{thread}/approvals/{approval}/links: it creates a link that
// approves or rejects a call, and answers 201 with its URL and expiry. Nothing is stored: the
// signed token contains everything. It is bound to the digest of the call's arguments, so an edit
// in between makes it void. A question cannot have a link, because it needs an answer.
//
// makeLink checks that the person may read the interrupt; whether the person may decide is checked
// when the link is used. Errors: 400 invalid_input, 403 forbidden, 404
// unknown_approval, 409 decided, 410 expired, 422.
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
	interrupt, err := r.findFor(ctx, link)
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
	auditing.Detail(ctx, "subject", link.Subject)
	token, err := r.inbox.Links.Token(link)
	if errors.Is(err, links.ErrTooLarge) {
		return problem.BadRequest("invalid_input", "/roles", "must be fewer: with all roles, your own included, the link would be too long")
	}
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	return request.WriteJSON(c, http.StatusCreated, gin.H{"url": r.publicURL(c.Request) + LinkPath + token, "expiresAt": link.Expires.UTC().Truncate(time.Second)})
}

// linkOf validates a request for a link, and returns the link without its interrupt. A caller
// that the policies do not let make links for other people gets a 403 for other subjects or roles
// than its own.
func (r *Routes) linkOf(ctx context.Context, body linkRequest, now time.Time) (links.Link, error) {
	l := links.Link{Decision: body.Decision, Subject: body.Subject, Roles: body.Roles, Expires: now.Add(linkTTL)}
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
	if body.Subject != "" {
		if err := request.CheckID("/subject", body.Subject); err != nil {
			return l, err
		}
	}
	p, ok := auth.From(ctx)
	switch {
	case body.Subject == "" && len(body.Roles) == 0, ok && body.Subject == p.Subject && len(body.Roles) == 0:
		l.Subject, l.Roles = p.Subject, p.Roles
	default:
		return l, r.access.CheckTenant(ctx, policy.CreateLink)
	}
	return l, nil
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
	link, interrupt, err := r.readLink(ctx, request.Segment(c, "token"))
	if err == nil {
		err = r.decisions.CheckOpen(ctx, stream.Thread{Tenant: link.Tenant, ID: link.Thread}, interrupt)
	}
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	page, err := linkPageOf(link, interrupt)
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	showLinkPage(c, http.StatusOK, page)
}

// readLink verifies a token, and returns its content and its interrupt. Errors: 404 unknown_link,
// 410 link_expired or link_used, and 404 unknown_approval if the interrupt is unknown or has other
// arguments than the link. A resolved interrupt is no error here: showLink checks it, and a
// decision by useLink may be a repetition.
func (r *Routes) readLink(ctx context.Context, token string) (links.Link, *decisions.Interrupt, error) {
	link, err := r.inbox.Links.Read(token)
	if errors.Is(err, links.ErrExpired) {
		return link, nil, problem.New(http.StatusGone, "link_expired", "This link has expired.")
	}
	if err != nil {
		return link, nil, problem.New(http.StatusNotFound, "unknown_link", "This link is not valid.")
	}
	isUsed, err := r.inbox.Links.Used(ctx, link)
	if err != nil {
		return link, nil, err
	}
	if isUsed {
		p := problem.New(http.StatusGone, "link_used", "This link has been used.")
		p.Recorded = &decisions.DecisionReceipt{ID: link.Approval, Decision: link.Decision}
		return link, nil, p
	}
	interrupt, err := r.findFor(ctx, link)
	// The person has not seen these arguments.
	if err == nil && interrupt.Open && interrupt.ArgsDigest() != link.Args {
		err = decisions.UnknownApproval(link.Approval)
	}
	return link, interrupt, err
}

// findFor returns the interrupt of a link, if the person of the link may read it. Only the tenant,
// the subject and the roles in the signed token count.
func (r *Routes) findFor(ctx context.Context, link links.Link) (*decisions.Interrupt, error) {
	thread := stream.Thread{Tenant: link.Tenant, ID: link.Thread}
	interrupt, err := r.decisions.Find(ctx, thread, link.Approval)
	if err != nil {
		return nil, err
	}
	return interrupt, r.decisions.CheckReadable(auth.With(ctx, personOf(link)), thread, interrupt)
}

// personOf returns the principal that decides by a link.
func personOf(link links.Link) auth.Principal {
	return auth.Principal{Tenant: link.Tenant, Subject: link.Subject, Roles: link.Roles}
}

// useLink serves POST /v1/links/{token}: it makes the decision of the link, as the link's subject
// and with its roles, like any other decision. It answers with a page that tells the outcome.
func (r *Routes) useLink(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	link, _, err := r.readLink(ctx, request.Segment(c, "token"))
	var receipt decisions.DecisionReceipt
	if err == nil {
		ctx = request.WithRun(ctx, stream.Run{Thread: stream.Thread{Tenant: link.Tenant, ID: link.Thread}}, "")
		c.Request = c.Request.WithContext(ctx)
		auditing.By(ctx, personOf(link))
		auditing.About(ctx, func(t *audit.Target) { t.Approval = link.Approval })
		auditing.Detail(ctx, "decision", link.Decision)
		linkCtx := request.WithChannel(auth.With(ctx, personOf(link)), request.ChannelLink)
		receipt, err = r.decisions.Decide(linkCtx, stream.Thread{Tenant: link.Tenant, ID: link.Thread}, link.Approval, decisions.Request{Decision: link.Decision})
	}
	if err != nil {
		r.showRefusal(c, err)
		return
	}
	// The decision comes before the note that the link was used: a crash in between must not lose
	// the decision. Without the note the link stays valid, but can only repeat its decision.
	if err := r.inbox.Links.Use(ctx, link); err != nil {
		r.finder.Logger.WarnContext(ctx, "the use of a link was not recorded", "error", err)
	}
	showLinkPage(c, http.StatusOK, linkPage{Decision: link.Decision, Done: true, Missing: receipt.Missing, Before: receipt.Recorded != nil && receipt.Recorded.By != link.Subject})
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
