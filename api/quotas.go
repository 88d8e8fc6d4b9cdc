package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
)

// newMeter returns the meter of the quotas that this server can count.
func (s *Server) newMeter() *quota.Meter {
	counts := map[quota.Name]quota.Count{
		quota.Streams:         func(_ context.Context, tenant string) (int64, error) { return int64(s.streams.Open(tenant)), nil },
		quota.Sockets:         func(_ context.Context, tenant string) (int64, error) { return int64(s.sockets.Open(tenant)), nil },
		quota.Agents:          func(_ context.Context, tenant string) (int64, error) { return int64(s.Catalog.Count(tenant)), nil },
		quota.DefinitionBytes: func(_ context.Context, tenant string) (int64, error) { return s.Catalog.Bytes(tenant), nil },
	}
	if s.LogBytes != nil {
		counts[quota.LogBytes] = s.LogBytes
	}
	if s.Files != nil {
		counts[quota.FileBytes] = func(_ context.Context, tenant string) (int64, error) { return s.Files.Index.Bytes(tenant), nil }
	}
	subjects := map[quota.Name]quota.SubjectCount{}
	if index := s.Threads; index != nil {
		subjects[quota.Runs] = func(tenant, subject string) int64 { return int64(index.ActiveOf(tenant, subject)) }
		counts[quota.Threads] = func(_ context.Context, tenant string) (int64, error) {
			all, _, _ := index.Counts(tenant)
			return int64(all), nil
		}
		counts[quota.Runs] = func(_ context.Context, tenant string) (int64, error) {
			_, active, _ := index.Counts(tenant)
			return int64(active), nil
		}
		counts[quota.Waiting] = func(_ context.Context, tenant string) (int64, error) {
			_, _, waiting := index.Counts(tenant)
			return int64(waiting), nil
		}
	}
	if counter := s.ScheduleCounts; counter != nil {
		subjects[quota.Schedules] = func(tenant, subject string) int64 {
			all, _ := counter.CountsOf(tenant, subject)
			return all
		}
		subjects[quota.Firings] = func(tenant, subject string) int64 {
			_, perHour := counter.CountsOf(tenant, subject)
			return perHour
		}
		counts[quota.Schedules] = func(_ context.Context, tenant string) (int64, error) {
			all, _ := counter.Counts(tenant)
			return all, nil
		}
		counts[quota.Firings] = func(_ context.Context, tenant string) (int64, error) {
			_, perHour := counter.Counts(tenant)
			return perHour, nil
		}
	}
	return &quota.Meter{Table: s.Quotas, Counts: counts, Subjects: subjects}
}

// MeasureQuotas exports what tenants have of their quotas as metrics, until the caller calls stop.
func (s *Server) MeasureQuotas() (stop func()) { return s.meter.Measure() }

// checkNewThread refuses the first input of a thread if the tenant has reached a quota, or the
// caller its part of the active runs.
func (s *Server) checkNewThread(ctx context.Context, in *preparedInput) error {
	if err := s.meter.Check(ctx, in.run.Tenant, quota.LogBytes, quota.Threads, quota.Runs, quota.Waiting); err != nil {
		return err
	}
	return s.meter.CheckSubject(in.run.Tenant, request.Caller(ctx).Subject, quota.Runs, 1)
}

// checkNewRun refuses an input of a thread, before anything is written, if the tenant has reached a
// quota, or the owner of the thread its part of the active runs. An input to a thread that waits
// for decisions or results continues what was accepted, and is not refused. An input to a thread
// with an active run begins no concurrent run.
func (s *Server) checkNewRun(ctx context.Context, in *preparedInput, thread loadedThread) error {
	switch {
	case len(in.input.Resume) > 0, len(thread.Interrupts)+len(thread.ClientCalls) > 0, thread.Seq == 0:
		return nil
	case thread.RunID != "" && !thread.Sealed:
		return nil
	}
	if err := s.meter.Check(ctx, in.run.Tenant, quota.LogBytes, quota.Runs, quota.Waiting); err != nil {
		return err
	}
	access, err := s.access.AccessTo(ctx, in.run.Thread)
	if err != nil || access == nil || access.Owner == nil {
		return err
	}
	return s.meter.CheckSubject(in.run.Tenant, *access.Owner, quota.Runs, 1)
}

// quotaList is the answer of GET /v1/quotas.
type quotaList struct {
	Tenant string      `json:"tenant"`
	Quotas []quotaItem `json:"quotas"`
	Rates  []rateItem  `json:"rates"`
	// SubjectPercent is missing if a subject may have all that its tenant may have.
	SubjectPercent *int64 `json:"subjectPercent,omitempty"`
}

// quotaItem is a quota of a tenant. Limit is missing if it is unlimited.
type quotaItem struct {
	Quota quota.Name `json:"quota"`
	Used  int64      `json:"used"`
	Limit *int64     `json:"limit,omitempty"`
}

// rateItem is a rate of a tenant or of its subjects. PerSecond is missing if it is unlimited.
type rateItem struct {
	Rate      quota.Name `json:"rate"`
	PerSecond *int64     `json:"perSecond,omitempty"`
}

// showQuotas serves GET /v1/quotas: what the tenant of the caller, or the one in the parameter
// tenant, has of its quotas, and its rates. Errors: 403 forbidden.
func (s *Server) showQuotas(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	tenant, err := request.TenantOf(c)
	if err != nil {
		return err
	}
	if err := s.access.CheckTenantOf(ctx, tenant, policy.ReadQuotas); err != nil {
		return err
	}
	usages, err := s.meter.Usages(ctx, tenant)
	if err != nil {
		return err
	}
	list := quotaList{Tenant: tenant, Quotas: []quotaItem{}, SubjectPercent: shownLimit(s.Quotas.Of(tenant, quota.SubjectPercent))}
	for _, u := range usages {
		list.Quotas = append(list.Quotas, quotaItem{u.Quota, u.Used, shownLimit(u.Limit)})
	}
	for _, name := range quota.Rated {
		list.Rates = append(list.Rates, rateItem{name, shownLimit(s.Quotas.Of(tenant, name))})
	}
	return request.WriteJSON(c, http.StatusOK, list)
}

// shownLimit returns a limit as clients get it; nil = unlimited.
func shownLimit(l quota.Limit) *int64 {
	if l == quota.Unlimited {
		return nil
	}
	shown := int64(l)
	return &shown
}
