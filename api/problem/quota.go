package problem

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure/internal/control/quota"
)

// quotaProblem returns the 429 for a caller beyond a rate or a quota; nil = err is another error.
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
	p := New(http.StatusTooManyRequests, "quota_exceeded", fmt.Sprintf("the tenant has %d of %s %s, and the request had no effect", e.Used, e.Limit, e.Quota))
	p.Quota, p.Limit, p.Used = string(e.Quota), int64(e.Limit), e.Used
	switch e.Quota {
	case quota.Streams, quota.Sockets, quota.Runs: // these end by themselves
		p.RetryAfter = fullRetry
	}
	return p
}

// rateLimited returns the 429 rate_limited, with the headers of
// draft-ietf-httpapi-ratelimit-headers-10.
func rateLimited(e *quota.RateError) *Problem {
	wait := int((e.Wait + time.Second - 1) / time.Second)
	p := New(http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("too many requests: %s allows %s per second, and the request had no effect", e.Policy, e.Limit))
	p.RetryAfter = wait
	p.RateLimit = fmt.Sprintf("%q;r=0;t=%d", e.Policy, wait)
	p.RateLimitPolicy = fmt.Sprintf("%q;q=%d;w=%d", e.Policy, e.Burst, e.Burst/int(e.Limit))
	return p
}

// beyondShare returns the 429 quota_exceeded for a caller with its share of the memory of a process.
func beyondShare(e *quota.ShareError) *Problem {
	p := New(http.StatusTooManyRequests, "quota_exceeded",
		fmt.Sprintf("other requests of the %s have %d %s of this API process, its share of them, and this request had no effect: wait until those have ended, or try another process", e.Holder, e.Used, e.Name))
	p.Quota, p.Used, p.RetryAfter = string(e.Name), e.Used, fullRetry
	return p
}
