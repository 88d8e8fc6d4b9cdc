package threadroutes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// forkPoint is a fork point in an answer.
type forkPoint struct {
	Cursor    string            `json:"cursor"`
	At        time.Time         `json:"at"`
	Kind      snapshot.ForkKind `json:"kind"`
	Name      string            `json:"name,omitempty"`
	MessageID string            `json:"messageId,omitempty"`
}

// segmentPoint is a fork point of a segment of a run.
type segmentPoint struct {
	snapshot.ForkPoint

	segment stream.Run
}

// listForkPoints serves GET /v1/threads/{thread}/runs/{run}/forkpoints: the cursors at which the run
// can be forked, in their order. Errors: 404 unknown_run.
func (r *Routes) listForkPoints(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	run, err := access.AddressRun(ctx, request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	if run, err = r.readableRun(ctx, run); err != nil {
		return err
	}
	points, err := r.forkPoints(ctx, run)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, struct {
		Items []forkPoint `json:"items"`
	}{r.shownForkPoints(points)})
}

// readableRun returns the last segment of a run that the caller may read. Errors: 403, 404
// unknown_run.
func (r *Routes) readableRun(ctx context.Context, run stream.Run) (stream.Run, error) {
	run, err := r.finder.LastSegment(ctx, run)
	if err != nil {
		return run, err
	}
	if err := r.finder.CheckRun(ctx, run, nil); err != nil {
		return run, err
	}
	return run, r.access.Check(ctx, run.Thread, policy.ReadThread)
}

// forkPoints returns the fork points of all segments of a run. Only the last segment has an end: the
// others ended with interrupts.
func (r *Routes) forkPoints(ctx context.Context, last stream.Run) ([]segmentPoint, error) {
	first := stream.Run{Thread: last.Thread, ID: last.Shown()}
	var all []segmentPoint
	for n := 1; ; n++ {
		segment := first.Segment(n)
		points, err := r.finder.Snapshots.ForkPoints(ctx, segment)
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if p.Kind != snapshot.ForkEnd || segment == last {
				all = append(all, segmentPoint{p, segment})
			}
		}
		if segment == last {
			return all, nil
		}
	}
}

// forkPointAt returns the fork point of a run at a cursor, and its segment. Errors: 422
// not_a_fork_point, and those of cursors.
func (r *Routes) forkPointAt(ctx context.Context, last stream.Run, at string) (stream.Run, *snapshot.ForkPoint, error) {
	cursor, err := r.finder.Log.ParseCursor(at)
	if err != nil {
		return last, nil, problem.Within("/at", err)
	}
	points, err := r.forkPoints(ctx, last)
	if err != nil {
		return last, nil, err
	}
	if i := slices.IndexFunc(points, func(p segmentPoint) bool { return p.IsAt(cursor.Position) }); i >= 0 {
		return points[i].segment, &points[i].ForkPoint, nil
	}
	next, _ := slices.BinarySearchFunc(points, cursor.Position, func(p segmentPoint, position stream.Position) int {
		if p.Position.Before(position) {
			return -1
		}
		return 1
	})
	reason, err := r.noForkPointReason(ctx, last.Thread, cursor.Position)
	if err != nil {
		return last, nil, err
	}
	p := problem.New(http.StatusUnprocessableEntity, "not_a_fork_point", reason)
	p.Pointer = "/at"
	if nearest := r.shownForkPoints(points[max(0, next-1):min(len(points), next+1)]); len(nearest) > 0 {
		var words []string
		for _, n := range nearest {
			words = append(words, strings.TrimSpace(fmt.Sprintf("%s (%s %.100s", n.Cursor, n.Kind, n.Name))+")")
		}
		p.Detail += ": use " + strings.Join(words, " or ")
		p.ForkPoints = nearest
	}
	return last, nil, p
}

// noForkPointReason returns why a run cannot be forked at a position that is no fork point: in
// particular, why not at the end of a step in another step.
func (r *Routes) noForkPointReason(ctx context.Context, thread stream.Thread, at stream.Position) (string, error) {
	const none = "no step or turn of the run ends at the cursor"
	rec, err := r.finder.Log.At(ctx, at.Seq)
	if err != nil || rec == nil || !rec.OfThread(thread) {
		return none, err
	}
	events, err := rec.Events(ctx)
	if err != nil || at.Index >= len(events) || agui.TypeOf(events[at.Index]) != agui.EventStepFinished {
		return none, err
	}
	e, err := agui.Decode(events[at.Index])
	if err != nil {
		return "", err
	}
	finished, ok := e.(*agui.StepFinished)
	switch {
	case !ok:
		return none, nil
	case rec.Lane.IsSubagentLane():
		return fmt.Sprintf("the step %.100q is in a branch or a subagent, and others that work in parallel may be at any of their steps", finished.StepName), nil
	}
	return fmt.Sprintf("the step %.100q is a turn in another step or the last step, has failed, or has calls without a result", finished.StepName), nil
}

// shownForkPoints returns fork points as answers have them; never nil.
func (r *Routes) shownForkPoints(points []segmentPoint) []forkPoint {
	shown := []forkPoint{}
	for _, p := range points {
		shown = append(shown, forkPoint{Cursor: r.finder.Log.CursorOf(p.Position).String(), At: p.Time.UTC(), Kind: p.Kind, Name: p.Name, MessageID: p.MessageID})
	}
	return shown
}
