package client

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
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
		Files     []string `json:"files"`    // to which no message refers
		Uploads   []string `json:"uploads"`  // that clients can continue
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

// ErrExportCut tells that an export does not end with a manifest that fits it.
var ErrExportCut = errors.New("client: the export is not complete: its manifest is missing, or does not fit; export again")

// ExportManifest is the last line of an export.
type ExportManifest struct {
	Subject    string         `json:"subject"`
	ExportedAt time.Time      `json:"exportedAt"`
	Counts     map[string]int `json:"counts"` // of lines, by kind
	SHA256     string         `json:"sha256"` // of all bytes before the manifest, in hex
}

// ExportSubject writes what the caller's tenant stores about a subject to out, one JSON object per
// line, and returns the manifest in the last line. The error wraps ErrExportCut if the manifest is
// missing or wrong: then out has a part of the export. The caller must be the subject, or an
// administrator of the tenant.
func (c *Client) ExportSubject(ctx context.Context, subject string, out io.Writer) (*ExportManifest, error) {
	conn, err := c.open(ctx, request{method: http.MethodGet, path: "/v1/subjects/" + url.PathEscape(subject) + "/export"})
	if err != nil {
		return nil, err
	}
	defer conn.close()
	return copyExport(out, conn)
}

// copyExport copies an export, and checks its manifest.
func copyExport(out io.Writer, in io.Reader) (*ExportManifest, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxResponseBytes)
	digest := sha256.New()
	var end *ExportManifest
	for lines.Scan() {
		var l struct {
			Kind string `json:"kind"`
			ExportManifest
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || end != nil {
			return nil, ErrExportCut // a part of a line, or one after the manifest
		}
		if l.Kind == "manifest" {
			end = &l.ExportManifest
			if end.SHA256 != hex.EncodeToString(digest.Sum(nil)) {
				return nil, ErrExportCut
			}
		}
		raw := append(slices.Clip(lines.Bytes()), '\n') // the scanner owns what follows the line
		_, _ = digest.Write(raw)                        // never fails
		if _, err := out.Write(raw); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExportCut, err)
	}
	if end == nil {
		return nil, ErrExportCut
	}
	return end, nil
}
