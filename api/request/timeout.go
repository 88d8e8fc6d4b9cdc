package request

import "time"

// ResponseTimeout bounds how long a request waits for the beginning of its answer, also during an
// outage of the log or Temporal. Then the answer is a 503, and the outcome is unknown.
const ResponseTimeout = 15 * time.Second
