package approvalroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/quota"
)

// Inbox has the dependencies of the routes for the interrupts of all threads. All fields but
// PublicURL are required. The caller owns and stops them.
type Inbox struct {
	Store *inbox.Store
	Index *inbox.Index
	Links *links.Keeper
	// PublicURL is the address of the API in links, without a slash at its end. "" = the address of
	// each request, which is wrong after a proxy that changes the Host.
	PublicURL string
}

// Routes serves decisions, the inbox and links. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	finder     *lookup.Finder
	decisions  *decisions.Service
	streams    *streams.Streams
	inbox      *Inbox // nil = there is no inbox
	access     *access.Guard
	principals *principals.Principals
	feeds      *quota.Room // the followers of the inbox
}

// Config configures Routes. All fields but Principals and Inbox are required.
type Config struct {
	Problems  problem.Writer
	Bodies    request.Reader
	Finder    *lookup.Finder
	Decisions *decisions.Service
	Streams   *streams.Streams
	Access    *access.Guard
	// Principals has the approvers whom links may name.
	Principals *principals.Principals
	// Inbox has the open interrupts of all threads. nil = the routes of the inbox and of links are
	// missing.
	Inbox *Inbox
}

// New returns routes without a follower of the inbox.
func New(cfg Config) *Routes {
	return &Routes{
		Writer: cfg.Problems, Reader: cfg.Bodies, finder: cfg.Finder, decisions: cfg.Decisions, streams: cfg.Streams, inbox: cfg.Inbox,
		access: cfg.Access, principals: cfg.Principals, feeds: quota.NewRoom(maxFeeds, cfg.Streams.Quotas, ""),
	}
}

// Register adds the routes that need authentication to the group /v1.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.POST("/threads/:thread/approvals/:approval", r.Handle(r.decideApproval))
	v1.POST("/threads/:thread/tool-results", r.Handle(r.postToolResult))
	v1.GET("/threads/:thread/approvals", r.Handle(r.showAudit))
	if r.inbox == nil {
		return
	}
	v1.GET("/approvals", r.Handle(r.listApprovals))
	v1.GET("/approvals/events", r.Handle(r.approvalEvents))
	v1.POST("/approvals/batch", r.Handle(r.decideBatch))
	v1.POST("/threads/:thread/approvals/:approval/links", r.Handle(r.makeLink))
}

// RegisterLinks adds the routes of links. Links that name their approver need no credentials,
// because the token in the path is one; for the others the routes use the middleware authenticate.
// Register them before authentication and CORS. record is middleware that records the decision in the
// audit log.
func (r *Routes) RegisterLinks(routes gin.IRoutes, authenticate, record gin.HandlerFunc) {
	if r.inbox == nil {
		return
	}
	admit := r.admitLink(authenticate)
	routes.GET(LinkPath+":token", admit, r.showLink)
	routes.HEAD(LinkPath+":token", admit, r.showLink) // programs that check the links of a mail send HEAD
	routes.POST(LinkPath+":token", admit, record, r.useLink)
}
