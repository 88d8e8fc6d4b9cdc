package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Schedule is a schedule with its state. In lists, Recent is not set.
type Schedule struct {
	ID        string      `json:"id"`
	Agent     string      `json:"agent"`
	ThreadID  string      `json:"threadId"`
	Cron      []string    `json:"cron"`
	Intervals []Interval  `json:"intervals"`
	TimeZone  string      `json:"timeZone"`
	Overlap   string      `json:"overlap"`
	RunAs     string      `json:"runAs"` // the service as which the runs act; "" = the subject that wrote the schedule
	Note      string      `json:"note"`
	Paused    bool        `json:"paused"`
	Next      []time.Time `json:"next"`
	Recent    []Firing    `json:"recent"` // newest first
}

// Firing is a time at which a schedule has fired, and the run that it started.
type Firing struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	Outcome     string    `json:"outcome"` // "" = the run is active
	Code        string    `json:"code"`    // of the run's error
	Active      bool      `json:"active"`
}

// Interval fires at every multiple of Every, a Go duration.
type Interval struct {
	Every string `json:"every"`
}

func schedulePath(id string, rest ...string) string {
	return path(append([]string{"v1", "schedules", id}, rest...)...)
}

// Schedules returns a page of schedules.
func (c *Client) Schedules(ctx context.Context, p Paging) (Document[Page[Schedule]], error) {
	return document[Page[Schedule]](ctx, c, get("/v1/schedules", p.query()))
}

// Schedule returns one schedule.
func (c *Client) Schedule(ctx context.Context, id string) (Document[Schedule], error) {
	return document[Schedule](ctx, c, get(schedulePath(id), nil))
}

// CreateSchedule creates a schedule from JSON (docs/guides/schedules.md). A schedule without an ID
// may be created twice if the request is repeated.
func (c *Client) CreateSchedule(ctx context.Context, schedule json.RawMessage) (Document[Schedule], error) {
	r, err := post("/v1/schedules", schedule)
	if err != nil {
		return Document[Schedule]{}, err
	}
	return document[Schedule](ctx, c, r)
}

// PauseSchedule pauses a schedule: it does not fire until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, id string) error {
	return c.command(ctx, schedulePath(id, "pause"), nil)
}

// ResumeSchedule ends the pause of a schedule.
func (c *Client) ResumeSchedule(ctx context.Context, id string) error {
	return c.command(ctx, schedulePath(id, "resume"), nil)
}

// TriggerSchedule fires a schedule now. overlap is the overlap policy of this firing; "" = that of
// the schedule. The request is not idempotent, so the client sends it once: after an
// UnreachableError the schedule may have fired.
func (c *Client) TriggerSchedule(ctx context.Context, id, overlap string) error {
	body := map[string]string{}
	if overlap != "" {
		body["overlap"] = overlap
	}
	r, err := post(schedulePath(id, "trigger"), body)
	if err != nil {
		return err
	}
	return c.sendOnce(ctx, r)
}

// DeleteSchedule deletes a schedule. Its runs continue.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: schedulePath(id)})
	return err
}
