package client

import (
	"context"
	"net/http"
	"net/url"
)

// SubjectDeletion is the report of the deletion of a subject: what was deleted, or would be in a dry
// run, and what stays.
type SubjectDeletion struct {
	Subject string `json:"subject"`
	DryRun  bool   `json:"dryRun"`
	// NextCursor continues the deletion; "" = it is complete.
	NextCursor string `json:"nextCursor,omitempty"`
	Deleted    struct {
		Threads   []string `json:"threads"`
		Completed []string `json:"completed"` // threads of any owner, whose deletion was interrupted
		Schedules []string `json:"schedules"`
		Shares    []string `json:"shares"`   // threads of other owners
		Sessions  int      `json:"sessions"` // of browsers
	} `json:"deleted"`
	Kept []struct {
		Kind   string `json:"kind"`
		ID     string `json:"id,omitempty"`
		Reason string `json:"reason"`
	} `json:"kept"`
}

// DeleteSubject deletes what the caller's tenant stores about a subject, or reports it in a dry run.
// If the report has a NextCursor, call DeleteSubject again with it. The caller must be an
// administrator of the tenant.
func (c *Client) DeleteSubject(ctx context.Context, subject, cursor string, dryRun bool) (Document[SubjectDeletion], error) {
	query := url.Values{}
	if dryRun {
		query.Set("dryRun", "true")
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return document[SubjectDeletion](ctx, c, request{method: http.MethodDelete, path: "/v1/subjects/" + url.PathEscape(subject), query: query})
}
