package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Schedule is one that starts runs, in short. Lists have no Recent.
type Schedule struct {
	ID        string      `json:"id"`
	Agent     string      `json:"agent"`
	ThreadID  string      `json:"threadId"`
	Cron      []string    `json:"cron"`
	Intervals []Interval  `json:"intervals"`
	TimeZone  string      `json:"timeZone"`
	Overlap   string      `json:"overlap"`
	Note      string      `json:"note"`
	Paused    bool        `json:"paused"`
	Next      []time.Time `json:"next"`
	Recent    []Firing    `json:"recent"` // the last one first
}

// Firing is a time at which a schedule has started a run.
type Firing struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	Outcome     string    `json:"outcome"` // "" = it has not ended
	Code        string    `json:"code"`    // of its error
	Active      bool      `json:"active"`
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

// Schedule returns one schedule.
func (c *Client) Schedule(ctx context.Context, id string) (Document[Schedule], error) {
	return document[Schedule](ctx, c, get(schedulePath(id), nil))
}

// CreateSchedule makes a schedule of its JSON, which docs/guides/schedules.md describes.
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

// TriggerSchedule starts a run of a schedule now; overlap says what happens if the one before is
// not over, "" = as the schedule does. It is sent once: sent again it might start another.
func (c *Client) TriggerSchedule(ctx context.Context, id, overlap string) error {
	body := map[string]string{}
	if overlap != "" {
		body["overlap"] = overlap
	}
	r, err := post(schedulePath(id, "trigger"), body)
	if err != nil {
		return err
	}
	return c.once(ctx, r)
}

// DeleteSchedule removes a schedule. Its runs stay.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: schedulePath(id)})
	return err
}
