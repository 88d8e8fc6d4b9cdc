package usageroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/usage"
)

// Routes serves the report of usage. All fields are required. It is safe for concurrent use.
type Routes struct {
	problem.Writer

	Access *access.Guard
	Ledger *usage.Ledger
}

// Register adds the route to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.GET("/usage", r.Handle(r.showUsage))
}

// report is the answer of GET /v1/usage.
type report struct {
	Items []usage.Item `json:"items"`
	// AllTenants tells that the caller may read the usage of all tenants.
	AllTenants bool `json:"allTenants,omitempty"`
}

// showUsage serves GET /v1/usage. Errors: 403 forbidden.
func (r *Routes) showUsage(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	q, err := readQuery(c, time.Now())
	if err != nil {
		return err
	}
	denied := r.Access.CheckPlatform(ctx, policy.ReadUsage)
	err = denied
	if q.Tenant != "" {
		err = r.Access.CheckTenantOf(ctx, q.Tenant, policy.ReadUsage)
	}
	if err != nil {
		return err
	}
	items, err := r.Ledger.Report(ctx, q)
	if errors.Is(err, usage.ErrTooManyItems) {
		return problem.InvalidParameter("groupBy", fmt.Sprintf("groupBy results in more than %d items: group by less, or choose fewer days", usage.MaxItems))
	}
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, report{items, denied == nil})
}

// defaultDays is how many days a report has without the parameter from.
const defaultDays = 30

// readQuery reads the query of a report from the parameters. Its tenant is that of the caller, or "" =
// all tenants, if the report is grouped by tenant and the parameter is missing.
func readQuery(c *gin.Context, now time.Time) (q usage.Query, err error) {
	if q.GroupBy, err = readGroups(c); err != nil {
		return q, err
	}
	if _, isNamed := c.GetQuery("tenant"); isNamed || !slices.Contains(q.GroupBy, usage.ByTenant) {
		if q.Tenant, err = request.TenantOf(c); err != nil {
			return q, err
		}
	}
	q.Agent = c.Query("agent")
	if q.To, err = readDay(c, "to", now.UTC()); err != nil {
		return q, err
	}
	if q.From, err = readDay(c, "from", q.To.AddDate(0, 0, 1-defaultDays)); err != nil {
		return q, err
	}
	switch days := q.To.Sub(q.From)/(24*time.Hour) + 1; {
	case q.From.After(q.To):
		return q, problem.InvalidParameter("from", "from must not be after to")
	case days > usage.MaxDays:
		return q, problem.InvalidParameter("from", fmt.Sprintf("from must be at most %d days before to", usage.MaxDays-1))
	}
	return q, nil
}

// readGroups reads the parameter groupBy: groups, separated by commas. By default it is the day.
func readGroups(c *gin.Context) ([]usage.Group, error) {
	var groups []usage.Group
	for name := range strings.SplitSeq(c.DefaultQuery("groupBy", string(usage.ByDay)), ",") {
		group := usage.Group(name)
		if !slices.Contains(usage.Groups, group) {
			return nil, problem.InvalidParameter("groupBy", "groupBy must be one or more of agent, model, tenant and day, separated by commas")
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// readDay reads a day in UTC from a parameter.
func readDay(c *gin.Context, name string, byDefault time.Time) (time.Time, error) {
	text := c.DefaultQuery(name, byDefault.Format(time.DateOnly))
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, problem.InvalidParameter(name, name+" must be a day, such as 2026-01-31")
	}
	return day, nil
}
