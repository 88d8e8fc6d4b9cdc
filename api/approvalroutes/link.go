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

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// LinkPath is the prefix of the routes of links. A link is a capability: its holder can make one
// decision as one person, once. GET only shows the decision, because mail programs and chats open
// links by themselves; POST decides. The path is a secret, so it is neither traced nor logged.
const LinkPath = "/v1/links/"

// linkLife is how long a link is valid by default. minLinkLife and maxLinkLife bound what a caller
// may choose.
const (
	linkLife    = 24 * time.Hour
	minLinkLife = time.Minute
	maxLinkLife = 7 * 24 * time.Hour
)

// roleLinks is the role of programs that send links to other people. With it, or as an
// administrator, a caller may choose the subject and the roles of a link.
const roleLinks = "links"

// linkRequest is the body of makeLink. Decision is approve or reject. ExpiresIn is a duration such
// as 24h; "" = linkLife.
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
// makeLink does not check whether the person may decide; using the link does. Errors: 403
// not_yours, 404 unknown_approval, 409 decided, 410 expired, 422.
func (s *Routes) makeLink(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	var in linkRequest
	if err == nil {
		err = s.ReadJSON(c, &in)
	}
	var l links.Link
	if err == nil {
		l, err = s.linkOf(c.Request.Context(), in, time.Now())
	}
	var q *decisions.Interrupt
	if err == nil {
		l.Tenant, l.Thread, l.Approval = thread.Tenant, thread.ID, request.Segment(c, "approval")
		q, err = s.decisions.Find(c.Request.Context(), thread, l.Approval)
	}
	if err == nil {
		err = s.decisions.CheckOpen(c.Request.Context(), thread, q)
	}
	if err == nil && decisions.IsQuestion(&q.Interrupt) {
		err = decisions.InvalidAnswer("/decision", "must be on a tool call: a question needs an answer")
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	l.Args = q.ArgsDigest() // readLink compares it
	token, err := s.inbox.Links.Token(l)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusCreated, gin.H{"url": s.publicURL(c.Request) + LinkPath + token, "expiresAt": l.Expires.UTC().Truncate(time.Second)})
}

// linkOf validates a request for a link, and returns the link without its interrupt. A caller
// without roleLinks or the administrators' role gets links for itself only; other subjects or roles
// are a 403 not_yours.
func (s *Routes) linkOf(ctx context.Context, in linkRequest, now time.Time) (links.Link, error) {
	l := links.Link{Decision: in.Decision, Subject: in.Subject, Roles: in.Roles, Expires: now.Add(linkLife)}
	if in.Decision != string(runs.DecisionApprove) && in.Decision != string(runs.DecisionReject) {
		return l, decisions.InvalidAnswer("/decision", `must be "approve" or "reject"`)
	}
	if in.ExpiresIn != "" {
		life, err := time.ParseDuration(in.ExpiresIn)
		if err != nil || life < minLinkLife || life > maxLinkLife {
			return l, problem.BadRequest("invalid_input", "/expiresIn", fmt.Sprintf("must be a duration from %s to %s, such as 24h", minLinkLife, maxLinkLife))
		}
		l.Expires = now.Add(life)
	}
	if in.Subject != "" {
		if err := request.CheckID("/subject", in.Subject); err != nil {
			return l, err
		}
	}
	p, known := auth.From(ctx)
	switch {
	case in.Subject == "" && len(in.Roles) == 0, known && in.Subject == p.Subject && len(in.Roles) == 0:
		l.Subject, l.Roles = p.Subject, p.Roles
	case known && !p.Has(roleLinks) && !p.Has(s.adminRole):
		return l, problem.New(http.StatusForbidden, "not_yours", `a link for another person needs the role "links"`)
	}
	return l, nil
}

// publicURL returns the address of the API for clients, without a slash at its end: PublicURL, or
// else that of the request.
func (s *Routes) publicURL(r *http.Request) string {
	if s.inbox.PublicURL != "" {
		return s.inbox.PublicURL
	}
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// showLink serves GET and HEAD /v1/links/{token}: a page that shows what the link decides, with a
// button that sends the POST. It changes nothing. A link that cannot decide gets a page with the
// reason, and the status of the problem.
func (s *Routes) showLink(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	l, q, err := s.readLink(ctx, request.Segment(c, "token"))
	if err == nil {
		err = s.decisions.CheckOpen(ctx, stream.Thread{Tenant: l.Tenant, ID: l.Thread}, q)
	}
	if err != nil {
		s.showRefusal(c, err)
		return
	}
	page, err := linkPageOf(l, q)
	if err != nil {
		s.showRefusal(c, err)
		return
	}
	showLinkPage(c, http.StatusOK, page)
}

// readLink verifies a token, and returns its content and its interrupt. Errors: 404 unknown_link,
// 410 link_expired or link_used, and 404 unknown_approval if the interrupt is unknown or has other
// arguments than the link. A resolved interrupt is no error here: showLink checks it, and a
// decision by useLink may be a repetition.
func (s *Routes) readLink(ctx context.Context, token string) (links.Link, *decisions.Interrupt, error) {
	l, err := s.inbox.Links.Read(token)
	if errors.Is(err, links.ErrExpired) {
		return l, nil, problem.New(http.StatusGone, "link_expired", "This link has expired.")
	}
	if err != nil {
		return l, nil, problem.New(http.StatusNotFound, "unknown_link", "This link is not valid.")
	}
	used, err := s.inbox.Links.Used(ctx, l)
	if err != nil {
		return l, nil, err
	}
	if used {
		p := problem.New(http.StatusGone, "link_used", "This link has been used.")
		p.Recorded = &decisions.Decided{ID: l.Approval, Decision: l.Decision}
		return l, nil, p
	}
	q, err := s.decisions.Find(ctx, stream.Thread{Tenant: l.Tenant, ID: l.Thread}, l.Approval)
	// The person has not seen these arguments.
	if err == nil && q.Open && q.ArgsDigest() != l.Args {
		err = decisions.UnknownApproval(l.Approval)
	}
	return l, q, err
}

// useLink serves POST /v1/links/{token}: it makes the decision of the link, as the link's subject
// and with its roles, like any other decision. It answers with a page that tells the outcome.
func (s *Routes) useLink(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	l, _, err := s.readLink(ctx, request.Segment(c, "token"))
	var answer decisions.Decided
	if err == nil {
		ctx = request.WithRun(ctx, stream.Run{Thread: stream.Thread{Tenant: l.Tenant, ID: l.Thread}}, "")
		c.Request = c.Request.WithContext(ctx)
		// The decision is made as the person of the link. Only the tenant, the subject and the
		// roles in the signed token count.
		as := request.WithChannel(auth.With(ctx, auth.Principal{Tenant: l.Tenant, Subject: l.Subject, Roles: l.Roles}), request.ChannelLink)
		answer, err = s.decisions.Decide(as, stream.Thread{Tenant: l.Tenant, ID: l.Thread}, l.Approval, decisions.Request{Decision: l.Decision})
	}
	if err != nil {
		s.showRefusal(c, err)
		return
	}
	// The decision comes before the note that the link was used: a crash in between must not lose
	// the decision. Without the note the link stays valid, but can only repeat its decision.
	if err := s.inbox.Links.Use(ctx, l); err != nil {
		s.find.Logger.WarnContext(ctx, "the use of a link was not recorded", "error", err)
	}
	showLinkPage(c, http.StatusOK, linkPage{Decision: l.Decision, Done: true, Missing: answer.Missing, Before: answer.Recorded != nil && answer.Recorded.By != l.Subject})
}

// showRefusal answers with a page that tells why a link does not decide. People see it, so it is
// not a problem in JSON. It logs the cause of a 5xx.
func (s *Routes) showRefusal(c *gin.Context, err error) {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError {
		s.find.Logger.ErrorContext(c.Request.Context(), "a link failed", "error", err)
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	page := linkPage{Problem: p.Detail, Unknown: p.Status >= http.StatusInternalServerError}
	if stands, ok := p.Recorded.(*decisions.Decided); ok {
		page.Decision = stands.Decision
	}
	showLinkPage(c, p.Status, page)
}
