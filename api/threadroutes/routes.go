package threadroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/deletion"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/api/stuck"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/index/threads"
)

// Config configures Routes. All fields but Index and Files are required.
type Config struct {
	Problems problem.Writer
	Bodies   request.Reader
	Finder   *lookup.Finder
	Commands *commands.Sender
	Deletion *deletion.Threads
	Watcher  *silence.Watcher
	Stuck    *stuck.Checker
	Access   *access.Guard
	// Meter has the quotas of tenants.
	Meter *quota.Meter
	// Index is the index of threads, in memory. nil = the route that lists threads is missing.
	Index *threads.Index
	// Files has the files of threads. nil = there are none.
	Files *attachments.Attachments
}

// Routes serves threads. It has no state of its own, and is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	finder   *lookup.Finder
	commands *commands.Sender
	deletion *deletion.Threads
	watcher  *silence.Watcher
	stuck    *stuck.Checker
	access   *access.Guard
	meter    *quota.Meter
	index    *threads.Index
	files    *attachments.Attachments
}

// New returns the routes.
func New(cfg Config) *Routes {
	return &Routes{cfg.Problems, cfg.Bodies, cfg.Finder, cfg.Commands, cfg.Deletion, cfg.Watcher, cfg.Stuck, cfg.Access, cfg.Meter, cfg.Index, cfg.Files}
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	if r.index != nil {
		v1.GET("/threads", r.Handle(r.listThreads))
	}
	v1.GET("/threads/:thread", r.Handle(r.showThread))
	v1.GET("/threads/:thread/messages", r.Handle(r.showMessages))
	v1.GET("/threads/:thread/state", r.Handle(r.showState))
	v1.GET("/threads/:thread/runs", r.Handle(r.listRuns))
	v1.GET("/threads/:thread/runs/:run", r.Handle(r.showRun))
	v1.GET("/threads/:thread/superseded", r.Handle(r.listSuperseded))
	v1.GET("/threads/:thread/superseded/:run", r.Handle(r.showSuperseded))
	v1.DELETE("/threads/:thread", r.Handle(r.deleteThread))
	v1.GET("/threads/:thread/shares", r.Handle(r.showShares))
	v1.PUT("/threads/:thread/shares", r.Handle(r.putShares))
	v1.PUT("/threads/:thread/title", r.Handle(r.putTitle))
	v1.PUT("/threads/:thread/metadata", r.Handle(r.putMetadata))
	v1.POST("/threads/:thread/runs/:run/fork", r.Handle(r.forkRun))
	v1.GET("/threads/:thread/runs/:run/forkpoints", r.Handle(r.listForkPoints))
}
