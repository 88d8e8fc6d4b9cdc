package audit

import (
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// Action is what a caller did, or wanted to do: the noun and the verb. docs/guides/audit.md lists
// all of them.
type Action string

// The actions.
const (
	StartRun        Action = "run.start"
	CancelRun       Action = "run.cancel"
	ForkRun         Action = "run.fork"
	SteerThread     Action = "thread.steer"
	PauseThread     Action = "thread.pause"
	ResumeThread    Action = "thread.resume"
	ShareThread     Action = "thread.share"
	DescribeThread  Action = "thread.describe"
	DeleteThread    Action = "thread.delete"
	DecideInterrupt Action = "approval.decide"
	SendToolResult  Action = "tool_result.send"
	CreateLink      Action = "link.create"
	DecideByLink    Action = "link.decide"
	CreateSchedule  Action = "schedule.create"
	ChangeSchedule  Action = "schedule.change"
	DeleteSchedule  Action = "schedule.delete"
	PauseSchedule   Action = "schedule.pause"
	ResumeSchedule  Action = "schedule.resume"
	TriggerSchedule Action = "schedule.trigger"
	// FireSchedule is a firing of a schedule, which no caller requests. A worker records it.
	FireSchedule  Action = "schedule.fire"
	SendEvent     Action = "event.send"
	FireTrigger   Action = "event.trigger"
	UploadFile    Action = "file.upload"
	DeleteFile    Action = "file.delete"
	PublishAgent  Action = "agent.publish"
	DraftAgent    Action = "agent.draft"
	SetHold       Action = "hold.set"
	ReleaseHold   Action = "hold.release"
	ReadAudit     Action = "audit.read"
	ExpireAudit   Action = "audit.expire"
	ExpireThread  Action = "thread.expire"
	DeleteSubject Action = "subject.delete"
	ExportSubject Action = "subject.export"
	// RotateKeys is the command perdure keys rotate.
	RotateKeys Action = "keys.rotate"
	// Read is every other request that reads. Only its denials are recorded.
	Read Action = "read"
	// Change is a request to a route that does not exist, with a method that may change something.
	Change Action = "change"
	// BeginSession and EndSession are sign-ins of browsers, and ends of their sessions before their
	// time.
	BeginSession Action = "session.begin"
	EndSession   Action = "session.end"
	// Authenticate is a request whose credentials, sender or origin are not accepted.
	Authenticate Action = "authenticate"
	// The contents of files of the configuration that an API has begun to use.
	LoadPolicies   Action = "policies.load"
	LoadKeys       Action = "api_keys.load"
	LoadPrincipals Action = "principals.load"
	LoadQuotas     Action = "quotas.load"
	LoadRetention  Action = "retention.load"
)

// DetailScope is the detail of PublishAgent and DraftAgent that tells to whom the agent belongs:
// ScopeTenant, or "platform". Publications and drafts of a tenant's agents are in the chain of the
// tenant. DetailRevision is the detail of StartRun that tells which revision the caller has named.
const (
	DetailScope = "scope"
	ScopeTenant = "tenant"

	DetailRevision = "revision"
)

// Outcome is the effect of an action.
type Outcome string

// The outcomes.
const (
	// Accepted: the action took effect, or had taken effect by an equal request before.
	Accepted Outcome = "accepted"
	// Denied: the caller may not do this, or no run began at a firing; the action had no effect.
	Denied Outcome = "denied"
	// Unknown: the request failed with a 5xx, and may have taken effect.
	Unknown Outcome = "unknown"
)

// Entry is one entry of a chain. Writer.Record sets Number, Time and Previous. Empty members are
// unknown or do not apply.
type Entry struct {
	Number  uint64    `json:"number"`
	Time    time.Time `json:"time"`
	Action  Action    `json:"action"`
	Outcome Outcome   `json:"outcome"`
	// Status is the HTTP status of the response, Code and Rule are those of its problem.
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// Actor is the caller, or as whom the run of a schedule acts; nil = another action of Perdure
	// itself, or a caller that is not authenticated.
	Actor *Actor `json:"actor,omitempty"`
	// Source is where the request came from; nil = it was no request.
	Source *Source `json:"source,omitempty"`
	// Target is what the action was about.
	Target
	// Details are further facts, such as the decision. Their names depend on the action.
	Details map[string]string `json:"details,omitempty"`
	// Previous is the digest of the entry before this one, in hex; that of the first entry is empty.
	Previous string `json:"previous,omitempty"`
}

// Actor is a caller, with its roles at that time.
type Actor struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject,omitempty"`
	// Roles are sorted. RolesOmitted is how many are left out, because there are more than maxRoles.
	Roles        []string `json:"roles,omitempty"`
	RolesOmitted int      `json:"rolesOmitted,omitempty"`
}

// maxRoles bounds the roles in an entry. A caller may have 256 roles of 256 bytes.
const maxRoles = 20

// ActorOf returns the actor of an entry.
func ActorOf(p auth.Principal) *Actor {
	a := &Actor{Tenant: p.Tenant, Subject: p.Subject, Roles: slices.Sorted(slices.Values(p.Roles))}
	if omitted := len(a.Roles) - maxRoles; omitted > 0 {
		a.Roles, a.RolesOmitted = a.Roles[:maxRoles], omitted
	}
	return a
}

// Source is where a request came from. Address is the peer of the connection, which may be a proxy:
// headers with addresses of clients are not believed. TraceID is that of the request's trace.
type Source struct {
	Address   string `json:"address,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	TraceID   string `json:"traceId,omitempty"`
}

// Target has the IDs of what an action is about.
type Target struct {
	Thread   string `json:"thread,omitempty"`
	Run      string `json:"run,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Approval string `json:"approval,omitempty"`
	Schedule string `json:"schedule,omitempty"`
}

// MaxTextBytes bounds each text of an entry that a client chooses, in bytes. IDs have at most 1,000.
const MaxTextBytes = 1000

// Cut returns a text with at most MaxTextBytes bytes, as valid UTF-8.
func Cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), MaxTextBytes)], "")
}
