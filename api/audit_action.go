package api

import (
	"net/http"

	"github.com/perdure/perdure/internal/audit"
)

// auditActions are the actions of the routes in the audit log. GET requests that are not listed are
// reads.
var auditActions = map[string]audit.Action{
	"POST /v1/agents/:agent/runs":                        audit.StartRun,
	"PUT /v1/agents/:agent":                              audit.PublishAgent,
	"POST /v1/agents/:agent/drafts":                      audit.DraftAgent,
	"POST /v1/agents/validate":                           audit.Read, // changes nothing
	"POST /v1/streams":                                   audit.Read,
	"POST /v1/threads/:thread/runs/:run/cancel":          audit.CancelRun,
	"POST /v1/threads/:thread/runs/:run/fork":            audit.ForkRun,
	"POST /v1/threads/:thread/messages":                  audit.SteerThread,
	"POST /v1/threads/:thread/pause":                     audit.PauseThread,
	"POST /v1/threads/:thread/resume":                    audit.ResumeThread,
	"PUT /v1/threads/:thread/shares":                     audit.ShareThread,
	"PUT /v1/threads/:thread/title":                      audit.DescribeThread,
	"PUT /v1/threads/:thread/metadata":                   audit.DescribeThread,
	"DELETE /v1/threads/:thread":                         audit.DeleteThread,
	"POST /v1/threads/:thread/approvals/:approval":       audit.DecideInterrupt,
	"POST /v1/threads/:thread/approvals/:approval/links": audit.CreateLink,
	"POST /v1/threads/:thread/tool-results":              audit.SendToolResult,
	"POST /v1/approvals/batch":                           audit.Read, // each decision has an entry of its own
	"POST /v1/links/:token":                              audit.DecideByLink,
	"POST /v1/schedules":                                 audit.CreateSchedule,
	"PUT /v1/schedules/:schedule":                        audit.ChangeSchedule,
	"DELETE /v1/schedules/:schedule":                     audit.DeleteSchedule,
	"POST /v1/schedules/:schedule/pause":                 audit.PauseSchedule,
	"POST /v1/schedules/:schedule/resume":                audit.ResumeSchedule,
	"POST /v1/schedules/:schedule/trigger":               audit.TriggerSchedule,
	"POST /v1/events":                                    audit.SendEvent,
	"POST /v1/files":                                     audit.UploadFile,
	"DELETE /v1/files/:file":                             audit.DeleteFile,
	"POST /webhooks/:source":                             audit.SendEvent,
	"PUT /v1/hold":                                       audit.SetHold,
	"DELETE /v1/hold":                                    audit.ReleaseHold,
	"PUT /v1/threads/:thread/hold":                       audit.SetHold,
	"DELETE /v1/threads/:thread/hold":                    audit.ReleaseHold,
	"DELETE /v1/subjects/:subject":                       audit.DeleteSubject,
	"GET /v1/subjects/:subject/export":                   audit.ExportSubject,
	"GET /v1/audit":                                      audit.ReadAudit,
	// A resumable upload is recorded when it becomes a file, see fileroutes.
	"POST /v1/uploads":            audit.Read,
	"PATCH /v1/uploads/:upload":   audit.Read,
	"DELETE /v1/uploads/:upload":  audit.Read,
	"OPTIONS /v1/uploads":         audit.Read,
	"OPTIONS /v1/uploads/:upload": audit.Read,
	// Package sessions reports sign-ins and ends of sessions, see observeSessions.
	"POST /auth/logout":             audit.Read,
	"POST /auth/backchannel-logout": audit.Read,
}

// auditAction returns the action of a route. A test compares the routes that change something with
// auditActions.
func auditAction(method, route string) audit.Action {
	if action, ok := auditActions[method+" "+route]; ok {
		return action
	}
	if method == http.MethodGet || method == http.MethodHead {
		return audit.Read
	}
	return audit.Change
}
