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

// maxBatch bounds the decisions of a batch. batchThreads bounds the threads that one batch updates
// concurrently.
const (
	maxBatch     = 100
	batchThreads = 8
)

// batchEntry is one decision of a batch, in the form of decideApproval and with the names of its
// interrupt.
type batchEntry struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	decisions.Request
}

// batchResult is the result of one decision of a batch: the status, and the members of the answer
// or of the problem that its own route would send.
type batchResult struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	// Status is the HTTP status that the decision's own route would answer. The next five members
	// are those of a decisions.Decided, the last four those of a problem.
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

// decideBatch serves POST /v1/approvals/batch: it makes up to maxBatch decisions independently of
// each other, and answers 200 with their results in the same order, also if all of them failed. A
// batch is not atomic. When request.Patience passes, the remaining results are 503, and the same
// batch may be sent again.
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

// decideEach makes the decisions of a batch, those of one thread in one call and several threads
// concurrently, and blocks until all are made.
func (s *Routes) decideEach(ctx context.Context, raw []json.RawMessage) []batchResult {
	results := make([]batchResult, len(raw))
	entries := make([]batchEntry, len(raw))
	threads := map[string][]int{} // the indexes of each thread's entries
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
		// Blocks while batchThreads goroutines are active.
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			var some []decisions.Target
			for _, i := range places {
				some = append(some, decisions.Target{ID: entries[i].ID, Request: entries[i].Request})
			}
			// Each index belongs to one goroutine, so results needs no lock.
			for n, answer := range s.decisions.DecideAll(ctx, stream.Thread{Tenant: request.Caller(ctx).Tenant, ID: id}, some) {
				results[places[n]] = s.resultOf(ctx, places[n], entries[places[n]], answer)
			}
		})
	}
	all.Wait()
	return results
}

// readEntry decodes and checks one decision as its own route would. It fills e as far as it can, so
// that the result names the interrupt.
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

// resultOf returns the result of the i-th decision. It logs the cause of a 5xx, once, because the
// answer does not contain it.
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
		// The pointer is relative to the decision; that of the answer is relative to the batch.
		if p.Pointer != "" || p.Status == http.StatusBadRequest {
			r.Pointer = fmt.Sprintf("/decisions/%d%s", i, p.Pointer)
		}
	}
	// All entries of a batch may name the same decision.
	if stands, ok := r.Recorded.(*decisions.Decided); ok {
		r.Recorded = stands.Short()
	}
	return r
}
