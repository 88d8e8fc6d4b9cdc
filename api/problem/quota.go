package problem

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure/internal/control/quota"
)

// quotaProblem returns the 429 for a caller beyond a rate or a quota, with the headers of
// draft-ietf-httpapi-ratelimit-headers-10; nil = err is another error.
func quotaProblem(err error) *Problem {
	if e, ok := errors.AsType[*quota.RateError](err); ok {
		return rateLimited(e)
	}
	if e, ok := errors.AsType[*quota.ShareError](err); ok {
		return beyondShare(e)
	}
	e, ok := errors.AsType[*quota.ExceededError](err)
	if !ok {
		return nil
	}
	detail := fmt.Sprintf("the tenant has %d of %s %s, and the request had no effect", e.Used, e.Limit, e.Quota)
	if e.OfSubject {
		detail = fmt.Sprintf("the subject has %d of the %s %s that one subject may have, and the request had no effect", e.Used, e.Limit, e.Quota)
	}
	p := New(http.StatusTooManyRequests, "quota_exceeded", detail)
	p.Quota, p.Limit, p.Used = string(e.Quota), int64(e.Limit), e.Used
	p.RateLimit = fmt.Sprintf("%q;r=%d", e.Quota, max(0, int64(e.Limit)-e.Used))
	p.RateLimitPolicy = fmt.Sprintf("%q;q=%d", e.Quota, e.Limit)
	switch e.Quota {
	case quota.Streams, quota.Sockets, quota.Runs: // these end by themselves
		p.RetryAfter = fullRetry
	}
	return p
}

// rateLimited returns the 429 rate_limited.
func rateLimited(e *quota.RateError) *Problem {
	wait := int((e.Wait + time.Second - 1) / time.Second)
	p := New(http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("too many requests: %s is %s, and the request had no effect", e.Policy, e.Limit))
	p.RetryAfter = wait
	p.RateLimit = fmt.Sprintf("%q;r=0;t=%d", e.Policy, wait)
	p.RateLimitPolicy = fmt.Sprintf("%q;q=%d;w=%d", e.Policy, e.Burst, int(e.Window.Seconds()))
	return p
}

// beyondShare returns the 429 quota_exceeded for a caller with its share of the memory of a process.
func beyondShare(e *quota.ShareError) *Problem {
	p := New(http.StatusTooManyRequests, "quota_exceeded",
		fmt.Sprintf("other requests of the %s have %d %s of this API process, its share of them, and this request had no effect: wait until those have ended, or try another process", e.Holder, e.Used, e.Name))
	p.Quota, p.Used, p.RetryAfter = string(e.Name), e.Used, fullRetry
	return p
}
