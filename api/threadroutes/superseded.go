package threadroutes

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// supersededTail describes the messages that the input of one run removed from a thread's
// conversation, by an edit, a regeneration or a replacement.
type supersededTail struct {
	// RunID is the run of the input.
	RunID        string    `json:"runId"`
	SupersededAt time.Time `json:"supersededAt"`
	// AfterMessageID is the message before the removed ones; "" = they began the conversation.
	AfterMessageID string `json:"afterMessageId,omitempty"`
	// Messages is the number of removed messages.
	Messages int `json:"messages"`
	// Fork is the run to fork in order to continue the conversation as it was before the removal;
	// nil = no run ended with that conversation.
	Fork *origin `json:"fork,omitempty"`
}

// listSuperseded serves GET /v1/threads/{thread}/superseded: one entry for each input that removed
// messages, the newest first. The cursor is the number of runs before the next page, counted from
// the first run, so it stays valid when runs are added.
func (r *Routes) listSuperseded(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	runCount, err := request.ParseCount(c.Query("cursor"))
	if err != nil {
		return err
	}
	thread, snap, err := r.latestThread(c)
	if err != nil {
		return err
	}
	page := struct {
		Items      []supersededTail `json:"items"`
		NextCursor string           `json:"nextCursor,omitempty"`
	}{Items: []supersededTail{}}
	runs := snap.Runs
	// 0 is the first page, which begins with the newest run.
	if runCount > 0 {
		runs = runs[:min(runCount, len(runs))]
	}
	// i counts from the first run, because runs is a prefix of snap.Runs.
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
			Fork: forkBefore(thread, snap, i),
		})
	}
	return request.WriteJSON(c, http.StatusOK, page)
}

// forkBefore returns the run, or the step of one, that ended with the conversation as it was before
// the i-th run began; nil = there is none. Before the first run of a fork it is the origin.
func forkBefore(thread stream.Thread, snap *snapshot.Snapshot, i int) *origin {
	if i == 0 {
		if snap.Origin == nil {
			return nil
		}
		return &origin{snap.Origin.Thread, snap.Origin.Run, snap.Origin.At}
	}
	before := stream.ShownRunID(snap.Runs[i-1].ID)
	if before == stream.ShownRunID(snap.Runs[i].ID) { // an earlier segment of the same run ID: a fork would begin at the end of the last one
		return nil
	}
	return &origin{ThreadID: thread.ID, RunID: before}
}

// showSuperseded serves GET /v1/threads/{thread}/superseded/{run}: the messages that the input of a
// run removed, oldest first. An unknown run is a 404; a run that removed none has an empty page.
// The cursor is the number of messages on earlier pages.
func (r *Routes) showSuperseded(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	from, err := request.ParseCount(c.Query("cursor"))
	if err != nil {
		return err
	}
	run, err := access.AddressRun(c.Request.Context(), request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	messages, err := r.supersededMessages(c, run)
	if err != nil {
		return err
	}
	page := messagesPage{Items: []agui.Message{}}
	bytes := 0
	for i, m := range messages[min(from, len(messages)):] {
		if len(page.Items) == limit || bytes >= request.PageBytes {
			page.NextCursor = request.CountCursor(from + i)
			break
		}
		bytes += messageBytes(m)
		page.Items = append(page.Items, m)
	}
	return request.WritePage(c, page.Items, page.NextCursor, messageBytes, agui.Message.MarshalJSON)
}

// supersededMessages returns the messages that all segments of a run removed. For an old run it
// reads the thread from its first record.
func (r *Routes) supersededMessages(c *gin.Context, run stream.Run) ([]agui.Message, error) {
	_, snap, err := r.latestThread(c)
	if err != nil {
		return nil, err
	}
	var messages []agui.Message
	// A run ID may have several segments, and each may have removed messages.
	found := false
	for _, n := range snap.Runs {
		if stream.ShownRunID(n.ID) != run.ID {
			continue
		}
		found = true
		if n.Superseded == nil {
			continue
		}
		removed, err := r.finder.Snapshots.SupersededBy(c.Request.Context(), run.Thread, n.Superseded)
		if err != nil {
			return nil, err
		}
		messages = append(messages, removed...)
	}
	if !found {
		return nil, problem.NoRun(run)
	}
	return messages, nil
}
