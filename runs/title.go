package runs

// TitleWorkflowID returns the ID of the workflow that has a model write the title of a thread. thread
// is the ID of the thread's workflow.
func TitleWorkflowID(thread string) string { return thread + "/title" }

// TitleInput is the input of TypeTitle and of ActivityWriteTitle, which has a model write the title
// of a thread. The step's run is the first run of the thread.
type TitleInput struct {
	Step
	// Input is the sequence of the run's input, which is the thread's first record.
	Input uint64 `json:"input"`
}
