package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// Bounds of a renewal. An API process renews the claims of a session for claimTimeout at most: if it
// dies, another one tries then. A request waits for renewalTimeout, and looks every renewalPoll.
const (
	claimTimeout   = 15 * time.Second
	renewalTimeout = 20 * time.Second
	renewalPoll    = 100 * time.Millisecond
)

// renewClaims renews the claims of a session by its refresh token, and returns the new record.
// Concurrent callers share one renewal, also those of other API processes. It continues if ctx ends,
// because the provider may have replaced the refresh token. If the provider refuses, the session
// ends.
//
// Errors: auth.ErrSessionEnded, auth.ErrUnavailable.
func (s *Sessions) renewClaims(ctx context.Context, id string) (*record, error) {
	done := s.renewals.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTimeout)
		defer cancel()
		return s.claimRenewal(ctx, id)
	})
	select {
	case result := <-done:
		if result.Err != nil {
			return nil, result.Err
		}
		rec := *result.Val.(*record) // each caller may change its copy
		return &rec, nil
	case <-ctx.Done():
		return nil, unavailable(context.Cause(ctx))
	}
}

// claimRenewal renews the claims unless another API process does: then it waits for that one.
func (s *Sessions) claimRenewal(ctx context.Context, id string) (*record, error) {
	for {
		rec, err := s.newest(ctx, id)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if !rec.isStale(now) {
			return rec, nil
		}
		if now.Before(rec.Refreshing) {
			select {
			case <-time.After(renewalPoll):
				continue
			case <-ctx.Done():
				return nil, unavailable(context.Cause(ctx))
			}
		}
		rec.Refreshing = now.Add(claimTimeout)
		switch err := s.store(ctx, id, rec); {
		case errors.Is(err, errConflict):
			continue
		case err != nil:
			return nil, err
		}
		return s.renew(ctx, id, rec)
	}
}

// newest returns the record of a session as the leader has it. Errors: auth.ErrSessionEnded,
// auth.ErrUnavailable.
func (s *Sessions) newest(ctx context.Context, id string) (*record, error) {
	value, revision, err := s.bucket.readLeader(ctx, sessionPrefix+id)
	if err != nil {
		return nil, err
	}
	rec := decodeRecord(value, revision)
	if rec == nil || !time.Now().Before(rec.ends(s.cfg.Idle)) {
		return nil, auth.ErrSessionEnded
	}
	return rec, nil
}

// renew requests a new grant for a session whose renewal this process has claimed.
func (s *Sessions) renew(ctx context.Context, id string, rec *record) (*record, error) {
	granting, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	grant, refusal := s.cfg.Client.Refresh(granting, rec.grant())
	if refusal != nil && !errors.Is(refusal, auth.ErrUnavailable) {
		if err := s.end(ctx, id, EndedByRefusal); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", auth.ErrSessionEnded, refusal)
	}
	for {
		rec.Refreshing = time.Time{}
		if refusal == nil {
			rec.setGrant(grant, time.Now())
		}
		err := s.store(ctx, id, rec)
		if err == nil && refusal != nil {
			err = refusal
		}
		if !errors.Is(err, errConflict) {
			return rec, err
		}
		// A request has touched the record, or the session has ended.
		if rec, err = s.newest(ctx, id); err != nil {
			return nil, err
		}
	}
}
