package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// A subagent has a lane of its own, and one for each of its parallel tool calls. The lanes belong
// to the slot of the call that it works for, so several subagents use a lane one after the other.

// Announced returns the ID of the last step of the subagent that uses a lane after Place.Since; ""
// = the subagent has not written. The error is ErrOver if another execution has written.
func (l *Log) Announced(ctx context.Context, p Place) (step string, err error) {
	last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
	switch {
	case err != nil || lastSeq(last) <= p.Since:
		return "", err
	case !last.writtenFor(p.Execution):
		return "", ErrOver
	}
	return last.Step, nil
}

// SupersedeSubagents supersedes all lanes of the subagents in a slot, if the workflow that owned
// them died before it did so. Place.Lane is the lane of the outermost subagent. Lanes that were not
// used after Place.Since are left alone.
func (l *Log) SupersedeSubagents(ctx context.Context, p Place) error {
	lanes, err := l.listLanes(ctx, p.Run)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		place := p
		place.Lane = lane
		if !strings.HasPrefix(string(lane), string(p.Lane)) {
			continue
		}
		if place.Step, err = l.Announced(ctx, place); err != nil {
			return err
		}
		if place.Step == "" {
			continue
		}
		if err := l.Supersede(ctx, place); err != nil {
			return err
		}
	}
	return nil
}

// listLanes lists the lanes of a run that have records, without internal ones. The server searches its
// subjects for it.
func (l *Log) listLanes(ctx context.Context, run Run) ([]Lane, error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return nil, fmt.Errorf("stream: lanes: %w", asUnavailable(err))
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(l.RunSubject(run)+".*"))
	if err != nil {
		return nil, fmt.Errorf("stream: lanes: %w", asUnavailable(err))
	}
	var lanes []Lane
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		_, _, lane, ok := splitSubject(subject)
		if !ok {
			return nil, errors.New("stream: a subject of a run is not a lane")
		}
		if !lane.IsInternal() {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}
