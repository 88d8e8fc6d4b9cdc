package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// pace decides whether and when one request or stream is retried. It is used by one goroutine.
type pace struct {
	client *Client
	pauses *backoff.ExponentialBackOff
	lostAt time.Time // the first failure of an uninterrupted series; zero = none
}

// pace returns a pace for one request or stream, with pauses from 250 ms to 10 s.
func (c *Client) pace() *pace {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 250*time.Millisecond, 10*time.Second
	pauses.Reset()
	return &pace{client: c, pauses: pauses}
}

// reset is called after a success: the next failure begins a new series.
func (p *pace) reset() {
	p.lostAt = time.Time{}
	p.pauses.Reset()
}

// waitBeforeRetry waits before the next attempt and returns nil. If there is to be none, it returns
// the final error: err itself, an UnreachableError when Config.RetryWindow has passed, or the cause
// of ctx.
func (p *pace) waitBeforeRetry(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	pause, ok := p.pause(err)
	if !ok {
		return err
	}
	now := time.Now()
	if p.lostAt.IsZero() {
		p.lostAt = now
	}
	expired := now.Add(pause).After(p.lostAt.Add(p.client.config.RetryWindow))
	if expired || !p.client.hasReached.Load() && isUnreachable(err) {
		return &UnreachableError{URL: p.client.base, Err: err}
	}
	if p.client.config.OnRetry != nil {
		p.client.config.OnRetry(err, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pause returns the pause after a failure. ok is false if another attempt would fail, too.
func (p *pace) pause(err error) (time.Duration, bool) {
	var (
		problem  *Problem
		tooLarge *TooLargeError
		frame    *FrameError
	)
	switch {
	case errors.As(err, &problem):
		return max(problem.RetryAfter, p.pauses.NextBackOff()), problem.isTemporary()
	case errors.As(err, &tooLarge), errors.As(err, &frame):
		return 0, false
	}
	return p.pauses.NextBackOff(), true
}

// isUnreachable reports whether no connection was made, or one to a server with an invalid
// certificate.
func isUnreachable(err error) bool {
	var (
		dial        *net.OpError
		certificate *tls.CertificateVerificationError
	)
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &certificate)
}
