package policy

import "github.com/cedar-policy/cedar-go"

// Action is what a caller wants to do, as policies name it: Action::"readThread".
type Action string

// The actions, with the type of their resources.
const (
	// CreateThread is on a Tenant, as are CreateSchedule and CreateLink, which allows to make links
	// for other people.
	CreateThread   Action = "createThread"
	CreateSchedule Action = "createSchedule"
	CreateLink     Action = "createLink"
	// RunAs is on a Tenant, and allows to write schedules that run as a configured service.
	RunAs Action = "runAs"
	// SendEvent is on a Tenant, and allows to send events to its runs.
	SendEvent Action = "sendEvent"
	// ReadQuotas is on a Tenant. It and ReadUsage are the only actions on another tenant than the
	// caller's.
	ReadQuotas Action = "readQuotas"
	// ReadUsage is on a Tenant, or on the Platform for all tenants: it allows to read what runs have
	// used.
	ReadUsage Action = "readUsage"

	// DeleteSubject is on a Tenant: it allows to delete everything about one of its subjects.
	DeleteSubject Action = "deleteSubject"
	// ExportSubject is on a Subject: it allows to read everything that the tenant stores about it.
	ExportSubject Action = "exportSubject"
	// SetHold is on a Tenant or a Thread: it allows to set and release its legal hold.
	SetHold Action = "setHold"
	// ReadAudit is on a Tenant or the Platform.
	ReadAudit Action = "readAudit"

	// ReadSystem is on the Platform: it allows to read the state of the processes and servers.
	ReadSystem Action = "readSystem"

	// ReadThread allows to read a Thread, its events, its state and its audit.
	ReadThread Action = "readThread"
	// RunThread allows to send input and results of client tools to a Thread, to steer it, and to
	// pause and cancel its runs.
	RunThread Action = "runThread"
	// ManageThread allows to share and to delete a Thread.
	ManageThread Action = "manageThread"
	// ReadInterrupt and DecideInterrupt are about one interrupt of a Thread. Context.Approver tells
	// whether the caller is an approver of it.
	ReadInterrupt   Action = "readInterrupt"
	DecideInterrupt Action = "decideInterrupt"

	// ReadSchedule and ManageSchedule are on a Schedule.
	ReadSchedule   Action = "readSchedule"
	ManageSchedule Action = "manageSchedule"

	// PublishAgent is on an Agent, as is ReadDefinition, which allows to read its prompts, and who
	// has published them.
	PublishAgent   Action = "publishAgent"
	ReadDefinition Action = "readDefinition"

	// CreateFile is on a Tenant: it allows to upload files. ReadFile and DeleteFile are on a File. A
	// caller that may read a thread also reads the files to which the thread refers.
	CreateFile Action = "createFile"
	ReadFile   Action = "readFile"
	DeleteFile Action = "deleteFile"

	// UseTool is on a Tool, UseModel on a Model, UseProgram on a Program: they allow to name it in
	// the definition of a tenant's agent. They are checked when the agent is published.
	UseTool    Action = "useTool"
	UseModel   Action = "useModel"
	UseProgram Action = "useProgram"
	// UseHost is on a Host: it allows that an agent of a tenant runs on that server.
	UseHost Action = "useHost"
)

// uid returns the entity of an action.
func (a Action) uid() cedar.EntityUID { return cedar.NewEntityUID("Action", cedar.String(a)) }

// Context is what a decision depends on beyond principal and resource. Policies read it as context.
type Context struct {
	// Approver tells that the caller is an approver of the interrupt.
	Approver bool
}

// record returns the context as policies read it.
func (c Context) record() cedar.Record {
	return cedar.NewRecord(cedar.RecordMap{"approver": cedar.Boolean(c.Approver)})
}
