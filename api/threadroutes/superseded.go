package threadroutes

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// supersededTail is what the input of one run removed from a thread's conversation.
type supersededTail struct {
	// RunID is the run of the input.
	RunID        string    `json:"runId"`
	SupersededAt time.Time `json:"supersededAt"`
	// AfterMessageID is the message before the superseded ones; "" = they began the conversation.
	AfterMessageID string `json:"afterMessageId,omitempty"`
	// Messages is how many messages were superseded.
	Messages int `json:"messages"`
	// Fork is the run whose fork continues the conversation before; nil = no run ended with it.
	Fork *origin `json:"fork,omitempty"`
}

// listSuperseded lists what inputs removed from a thread's conversation, the newest first. A cursor
// counts the runs that are older than the page.
func (s *Routes) listSuperseded(c *gin.Context) {
	limit, err := request.Limit(c)
	var older int
	if err == nil {
		older, err = request.ParseCount(c.Query("cursor"))
	}
	var thread stream.Thread
	var now *snapshot.Snapshot
	if err == nil {
		thread, now, err = s.threadAsItIs(c)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	page := struct {
		Items      []supersededTail `json:"items"`
		NextCursor string           `json:"nextCursor,omitempty"`
	}{Items: []supersededTail{}}
	runs := now.Runs
	if older > 0 {
		runs = runs[:min(older, len(runs))]
	}
	for i, n := range slices.Backward(runs) {
		if n.Superseded == nil {
			continue
		}
		if len(page.Items) == limit {
			page.NextCursor = request.CountCursor(i + 1)
			break
		}
		page.Items = append(page.Items, supersededTail{
			RunID: stream.ShownRunID(n.ID), SupersededAt: n.Began.UTC(), AfterMessageID: n.Superseded.After, Messages: n.Superseded.Messages,
			Fork: forkBefore(thread, now, i),
		})
	}
	c.JSON(http.StatusOK, page)
}

// forkBefore returns the run that ended with the conversation as it was before a run began.
func forkBefore(thread stream.Thread, now *snapshot.Snapshot, i int) *origin {
	if i == 0 {
		if now.Origin == nil {
			return nil
		}
		return &origin{now.Origin.Thread, now.Origin.Run}
	}
	before := stream.ShownRunID(now.Runs[i-1].ID)
	if before == stream.ShownRunID(now.Runs[i].ID) { // an earlier segment of the same run: a fork would begin at its end
		return nil
	}
	return &origin{thread.ID, before}
}

// showSuperseded answers with the messages that the input of a run removed from the conversation.
func (s *Routes) showSuperseded(c *gin.Context) {
	limit, err := request.Limit(c)
	var from int
	if err == nil {
		from, err = request.ParseCount(c.Query("cursor"))
	}
	var run stream.Run
	if err == nil {
		run, err = request.RunOf(c)
	}
	var messages []agui.Message
	if err == nil {
		messages, err = s.superseded(c, run)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	page := messagesPage{Items: []agui.Message{}}
	bytes := 0
	for i, m := range messages[min(from, len(messages)):] {
		if len(page.Items) == limit || bytes >= request.PageBytes {
			page.NextCursor = request.CountCursor(from + i)
			break
		}
		bytes += snapshot.Entry{Message: m}.Weight()
		page.Items = append(page.Items, m)
	}
	c.JSON(http.StatusOK, page)
}

func (s *Routes) superseded(c *gin.Context, run stream.Run) ([]agui.Message, error) {
	_, now, err := s.threadAsItIs(c)
	if err != nil {
		return nil, err
	}
	var messages []agui.Message
	known := false
	for _, n := range now.Runs {
		if stream.ShownRunID(n.ID) != run.ID {
			continue
		}
		known = true
		if n.Superseded == nil {
			continue
		}
		more, err := s.find.Snapshots.SupersededBy(c.Request.Context(), run.Thread, n.Superseded)
		if err != nil {
			return nil, err
		}
		messages = append(messages, more...)
	}
	if !known {
		return nil, problem.NoRun(run)
	}
	return messages, nil
}
