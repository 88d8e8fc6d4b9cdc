package subjectroutes

// report is the answer to the deletion of a subject: what was deleted, or would be in a dry run, and
// what stays.
type report struct {
	Subject string `json:"subject"`
	DryRun  bool   `json:"dryRun"`
	// NextCursor continues the deletion; "" = it is complete.
	NextCursor string  `json:"nextCursor,omitempty"`
	Deleted    deleted `json:"deleted"`
	Kept       []kept  `json:"kept"`
}

// deleted is what was deleted.
type deleted struct {
	// Threads are the IDs of threads of the subject.
	Threads []string `json:"threads"`
	// Completed are the IDs of threads whose deletion was interrupted earlier, of any owner: the
	// name of the owner is deleted by then.
	Completed []string `json:"completed"`
	Schedules []string `json:"schedules"`
	// Shares are the IDs of threads of other owners that were shared with the subject.
	Shares []string `json:"shares"`
	// Files are the IDs of files of the subject to which no thread referred.
	Files []string `json:"files"`
	// Uploads are the IDs of resumable uploads of the subject.
	Uploads []string `json:"uploads"`
	// Sessions is the number of sessions of browsers.
	Sessions int `json:"sessions"`
}

// kept is something that stays, and why.
type kept struct {
	// Kind is thread, contribution, schedule, file, links or auditEntries; ID is that of the thread, the
	// schedule or the file.
	Kind   string `json:"kind"`
	ID     string `json:"id,omitempty"`
	Reason string `json:"reason"`
}
