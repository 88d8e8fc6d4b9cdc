package approvalroutes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

// maxBatch bounds the decisions of a batch. maxBatchThreads bounds the threads that one batch
// updates concurrently.
const (
	maxBatch        = 100
	maxBatchThreads = 8
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
	// Tallies are the votes for each set of arguments.
	Tallies  []inbox.Tally `json:"tallies,omitempty"`
	Cursor   string        `json:"cursor,omitempty"`
	Code     string        `json:"code,omitempty"`
	Detail   string        `json:"detail,omitempty"`
	Pointer  string        `json:"pointer,omitempty"`
	Recorded any           `json:"recorded,omitempty"`
}

// decideBatch serves POST /v1/approvals/batch: it makes up to maxBatch decisions independently of
// each other, and answers 200 with their results in the same order, also if all of them failed. A
// batch is not atomic. When request.ResponseTimeout passes, the remaining results are 503, and the
// same batch may be sent again.
func (r *Routes) decideBatch(c *gin.Context) error {
	var body struct {
		Decisions []json.RawMessage `json:"decisions"`
	}
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	if n := len(body.Decisions); n == 0 || n > maxBatch {
		return problem.BadRequest("invalid_input", "/decisions", fmt.Sprintf("must have 1 to %d entries", maxBatch))
	}
	ctx, cancel := context.WithTimeout(request.WithChannel(c.Request.Context(), request.ChannelIn(c, request.ChannelBatch)), request.ResponseTimeout)
	defer cancel()
	return request.WriteJSON(c, http.StatusOK, gin.H{"items": r.decideEntries(ctx, body.Decisions)})
}

// decideEntries makes the decisions of a batch, those of one thread in one call and several threads
// concurrently, and blocks until all are made.
func (r *Routes) decideEntries(ctx context.Context, raw []json.RawMessage) []batchResult {
	results := make([]batchResult, len(raw))
	entries := make([]batchEntry, len(raw))
	threadEntries := map[string][]int{} // the indexes of each thread's entries
	for i := range raw {
		if err := readEntry(raw[i], &entries[i]); err != nil {
			results[i] = r.batchResultOf(ctx, i, entries[i], decisions.Outcome{Err: err})
			continue
		}
		threadEntries[entries[i].ThreadID] = append(threadEntries[entries[i].ThreadID], i)
	}
	slots := make(chan struct{}, maxBatchThreads)
	var group sync.WaitGroup
	for id, indexes := range threadEntries {
		// Blocks while maxBatchThreads goroutines are active.
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var targets []decisions.Target
			for _, i := range indexes {
				targets = append(targets, decisions.Target{ID: entries[i].ID, Request: entries[i].Request})
			}
			// Each index belongs to one goroutine, so results needs no lock.
			for n, outcome := range r.decisions.DecideAll(ctx, stream.Thread{Tenant: request.Caller(ctx).Tenant, ID: id}, targets) {
				results[indexes[n]] = r.batchResultOf(ctx, indexes[n], entries[indexes[n]], outcome)
			}
		})
	}
	group.Wait()
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

// batchResultOf returns the result of the i-th decision. It logs the cause of a 5xx, once, because
// the answer does not contain it.
func (r *Routes) batchResultOf(ctx context.Context, i int, e batchEntry, outcome decisions.Outcome) batchResult {
	auditing.Also(ctx, audit.DecideInterrupt, func(further *audit.Entry) {
		further.Target = audit.Target{Thread: audit.Cut(e.ThreadID), Approval: audit.Cut(e.ID)}
		further.Details = map[string]string{"decision": audit.Cut(e.Decision)}
	}, outcome.Err)
	result := batchResult{
		ThreadID: e.ThreadID,
		ID:       e.ID,
		Status:   http.StatusOK,
		Decision: outcome.Decision,
		Repeated: outcome.Repeated,
		Missing:  outcome.Missing,
		Tallies:  outcome.Tallies,
		Cursor:   outcome.Cursor,
	}
	if outcome.Recorded != nil {
		result.Recorded = outcome.Recorded
	}
	if outcome.Err != nil {
		p := problem.Of(outcome.Err)
		if p.Status >= http.StatusInternalServerError {
			r.finder.Logger.ErrorContext(ctx, "a decision of a batch failed", "thread", e.ThreadID, "approval", e.ID, "error", outcome.Err)
		}
		result.Status, result.Code, result.Detail, result.Recorded = p.Status, p.Code, p.Detail, p.Recorded
		// The pointer is relative to the decision; that of the answer is relative to the batch.
		if p.Pointer != "" || p.Status == http.StatusBadRequest {
			result.Pointer = fmt.Sprintf("/decisions/%d%s", i, p.Pointer)
		}
	}
	// All entries of a batch may name the same decision.
	if recorded, ok := result.Recorded.(*decisions.DecisionReceipt); ok {
		result.Recorded = recorded.Short()
	}
	return result
}
