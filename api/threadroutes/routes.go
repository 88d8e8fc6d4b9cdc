package threadroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/index/threads"
)

// Config configures Routes. All fields but Index and Inbox are required.
type Config struct {
	Problems problem.Writer
	Bodies   request.Reader
	Find     *lookup.Finder
	Commands *commands.Sender
	Watcher  *silence.Watcher
	// Index is the index of threads, in memory. nil = the route that lists threads is missing.
	Index *threads.Index
	// Inbox has the open interrupts of all threads; a deletion removes those of its thread. nil =
	// there is no inbox.
	Inbox *inbox.Store
}

// Routes serves threads. It has no state of its own, and is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	find     *lookup.Finder
	commands *commands.Sender
	watcher  *silence.Watcher
	index    *threads.Index
	inbox    *inbox.Store
}

// New returns the routes.
func New(cfg Config) *Routes {
	return &Routes{cfg.Problems, cfg.Bodies, cfg.Find, cfg.Commands, cfg.Watcher, cfg.Index, cfg.Inbox}
}

// Register adds the routes to the group /v1, which authenticates.
func (s *Routes) Register(v1 *gin.RouterGroup) {
	if s.index != nil {
		v1.GET("/threads", s.listThreads)
	}
	v1.GET("/threads/:thread", s.showThread)
	v1.GET("/threads/:thread/messages", s.showMessages)
	v1.GET("/threads/:thread/state", s.showState)
	v1.GET("/threads/:thread/runs", s.listRuns)
	v1.GET("/threads/:thread/superseded", s.listSuperseded)
	v1.GET("/threads/:thread/superseded/:run", s.showSuperseded)
	v1.DELETE("/threads/:thread", s.deleteThread)
	v1.POST("/threads/:thread/runs/:run/fork", s.forkRun)
}
