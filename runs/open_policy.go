package runs

// OpenPolicy says what happens to an input that leaves interrupts of the thread open.
type OpenPolicy string

// The values of OpenPolicy.
const (
	OpenReject  OpenPolicy = "reject"
	OpenQueue   OpenPolicy = "queue"   // the input waits until all are resolved
	OpenAbandon OpenPolicy = "abandon" // the open interrupts are abandoned
)
