package threadroutes

import (
	"fmt"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
)

// readFilter reads the filter of a list from the query. Invalid values are 400.
func readFilter(c *gin.Context) (threads.Filter, error) {
	filter := threads.Filter{
		Agent: c.Query("agent"), Status: stream.Status(c.Query("status")), Owner: c.Query("owner"), Text: c.Query("q"),
		WaitingFor: stream.WaitKind(c.Query("waitingFor")),
	}
	if filter.Status != "" && !slices.Contains(stream.Statuses, filter.Status) {
		return filter, problem.InvalidParameter("status", "status must be running, paused, waiting, failed or idle")
	}
	if filter.WaitingFor != "" && !slices.Contains(stream.WaitKinds, filter.WaitingFor) {
		return filter, problem.InvalidParameter("waitingFor", "waitingFor must be approval, question, limit or client_tool")
	}
	var err error
	if filter.Retrying, err = readBool(c, "retrying"); err != nil {
		return filter, err
	}
	if len(filter.Text) > maxSearchBytes || !stream.IsPlainText(filter.Text) {
		return filter, problem.InvalidParameter("q", fmt.Sprintf("q must be text on one line, with at most %d bytes", maxSearchBytes))
	}
	for name, bound := range map[string]*time.Time{
		"updatedAfter": &filter.After, "updatedBefore": &filter.Before, "createdAfter": &filter.CreatedAfter, "createdBefore": &filter.CreatedBefore,
	} {
		if *bound, err = readTime(c, name); err != nil {
			return filter, err
		}
	}
	if filter.MinCost, err = readCost(c, "minCost"); err == nil {
		filter.MaxCost, err = readCost(c, "maxCost")
	}
	return filter, err
}

// readBool reads true or false from a parameter; false = the parameter is missing.
func readBool(c *gin.Context, name string) (bool, error) {
	switch c.DefaultQuery(name, "false") {
	case "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, problem.InvalidParameter(name, name+" must be true or false")
}

// readCost reads an amount from a parameter, in millionths; nil = the parameter is missing.
func readCost(c *gin.Context, name string) (*int64, error) {
	text, ok := c.GetQuery(name)
	if !ok {
		return nil, nil
	}
	amount, err := agents.ParseMoney(text)
	if err != nil {
		return nil, problem.InvalidParameter(name, name+" "+err.Error())
	}
	millionths := int64(amount)
	return &millionths, nil
}

// maxSearchBytes bounds the parameter q: longer text is in no title and no value.
const maxSearchBytes = 320

// readTime reads an RFC 3339 time from a parameter; zero = the parameter is missing.
func readTime(c *gin.Context, name string) (time.Time, error) {
	text, ok := c.GetQuery(name)
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, problem.InvalidParameter(name, name+" must be a time, such as 2026-11-21T09:30:00Z")
	}
	return t, nil
}
