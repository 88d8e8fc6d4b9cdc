package approvalroutes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/stream"
)

// Bounds of a batch: its decisions, and the threads that are updated concurrently.
const (
	maxBatch     = 100
	batchThreads = 8
)

// batchEntry is one decision of a batch.
type batchEntry struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	decisions.Request
}

// batchResult is the result of one decision: the status and the members that its own route would
// answer.
type batchResult struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	Status   int    `json:"status"`
	Decision string `json:"decision,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Missing  int    `json:"missing,omitempty"`
	// Proposals counts the votes for each proposal.
	Proposals []inbox.Proposal `json:"proposals,omitempty"`
	Cursor    string           `json:"cursor,omitempty"`
	Code      string           `json:"code,omitempty"`
	Detail    string           `json:"detail,omitempty"`
	Pointer   string           `json:"pointer,omitempty"`
	Recorded  any              `json:"recorded,omitempty"`
}

// decideBatch carries out decisions independently of each other, and answers in their order.
func (s *Routes) decideBatch(c *gin.Context) {
	var body struct {
		Decisions []json.RawMessage `json:"decisions"`
	}
	err := s.ReadJSON(c, &body)
	if n := len(body.Decisions); err == nil && (n == 0 || n > maxBatch) {
		err = problem.BadRequest("invalid_input", "/decisions", fmt.Sprintf("must have 1 to %d entries", maxBatch))
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(request.WithChannel(c.Request.Context(), request.ChannelIn(c, request.ChannelBatch)), request.Patience)
	defer cancel()
	c.JSON(http.StatusOK, gin.H{"items": s.decideEach(ctx, body.Decisions)})
}

// decideEach sends each thread its decisions, several threads concurrently.
func (s *Routes) decideEach(ctx context.Context, raw []json.RawMessage) []batchResult {
	results := make([]batchResult, len(raw))
	entries := make([]batchEntry, len(raw))
	threads := map[string][]int{} // the positions of their entries
	for i := range raw {
		if err := readEntry(raw[i], &entries[i]); err != nil {
			results[i] = s.resultOf(ctx, i, entries[i], decisions.Outcome{Err: err})
			continue
		}
		threads[entries[i].ThreadID] = append(threads[entries[i].ThreadID], i)
	}
	room := make(chan struct{}, batchThreads)
	var all sync.WaitGroup
	for id, places := range threads {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			var some []decisions.Asked
			for _, i := range places {
				some = append(some, decisions.Asked{ID: entries[i].ID, Request: entries[i].Request})
			}
			for n, answer := range s.decisions.DecideAll(ctx, stream.Thread{Tenant: request.Caller(ctx).Tenant, ID: id}, some) {
				results[places[n]] = s.resultOf(ctx, places[n], entries[places[n]], answer)
			}
		})
	}
	all.Wait()
	return results
}

// readEntry checks one decision as its own route would.
func readEntry(raw json.RawMessage, e *batchEntry) error {
	if err := request.DecodeObject(raw, e); err != nil {
		return err
	}
	if err := request.CheckID("/threadId", e.ThreadID); err != nil {
		return err
	}
	if err := request.CheckID("/id", e.ID); err != nil {
		return err
	}
	return e.Check("")
}

// resultOf returns the result of the i-th decision. The cause of a 503 is logged, once.
func (s *Routes) resultOf(ctx context.Context, i int, e batchEntry, answer decisions.Outcome) batchResult {
	r := batchResult{ThreadID: e.ThreadID, ID: e.ID, Status: http.StatusOK, Decision: answer.Decision, Repeated: answer.Repeated, Missing: answer.Missing, Proposals: answer.Proposals, Cursor: answer.Cursor}
	if answer.Recorded != nil {
		r.Recorded = answer.Recorded
	}
	if answer.Err != nil {
		p := problem.Of(answer.Err)
		if p.Status >= http.StatusInternalServerError {
			s.find.Logger.ErrorContext(ctx, "a decision of a batch failed", "thread", e.ThreadID, "approval", e.ID, "error", answer.Err)
		}
		r.Status, r.Code, r.Detail, r.Recorded = p.Status, p.Code, p.Detail, p.Recorded
		if p.Pointer != "" || p.Status == http.StatusBadRequest {
			r.Pointer = fmt.Sprintf("/decisions/%d%s", i, p.Pointer)
		}
	}
	if stands, ok := r.Recorded.(*decisions.Decided); ok {
		r.Recorded = stands.Short()
	}
	return r
}
