package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Schedule is one that starts runs, in short.
type Schedule struct {
	ID        string     `json:"id"`
	Agent     string     `json:"agent"`
	ThreadID  string     `json:"threadId"`
	Cron      []string   `json:"cron"`
	Intervals []Interval `json:"intervals"`
	TimeZone  string     `json:"timeZone"`
	Paused    bool       `json:"paused"`
	Note      string     `json:"note"`
}

// Interval names times by what is between them.
type Interval struct {
	Every string `json:"every"`
}

func schedulePath(id string, more ...string) string {
	return path(append([]string{"v1", "schedules", id}, more...)...)
}

// Schedules lists schedules.
func (c *Client) Schedules(ctx context.Context, p Paging) (Document[Page[Schedule]], error) {
	return document[Page[Schedule]](ctx, c, get("/v1/schedules", p.query()))
}

// Schedule is one schedule.
func (c *Client) Schedule(ctx context.Context, id string) (Document[Schedule], error) {
	return document[Schedule](ctx, c, get(schedulePath(id), nil))
}

// CreateSchedule makes a schedule of its JSON, which docs/schedules.md describes.
func (c *Client) CreateSchedule(ctx context.Context, schedule json.RawMessage) (Document[Schedule], error) {
	r, err := post("/v1/schedules", schedule)
	if err != nil {
		return Document[Schedule]{}, err
	}
	return document[Schedule](ctx, c, r)
}

// PauseSchedule lets a schedule start nothing until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, id string) error {
	return c.command(ctx, schedulePath(id, "pause"), nil)
}

// ResumeSchedule lets a paused schedule go on.
func (c *Client) ResumeSchedule(ctx context.Context, id string) error {
	return c.command(ctx, schedulePath(id, "resume"), nil)
}

// TriggerSchedule starts a run of a schedule now. It is sent once: sent again it would start another.
func (c *Client) TriggerSchedule(ctx context.Context, id string) error {
	return c.once(ctx, request{method: http.MethodPost, path: schedulePath(id, "trigger")})
}

// DeleteSchedule removes a schedule. Its runs stay.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	_, err := c.ask(ctx, request{method: http.MethodDelete, path: schedulePath(id)})
	return err
}
