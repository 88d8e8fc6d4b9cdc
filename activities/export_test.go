package activities

import "time"

func init() { heartbeatInterval = time.Hour }

// Afterwards is tested by itself: an outage that lasts is too long for a test.
var Afterwards = afterwards

// ShownArgs is for tests.
var ShownArgs = shownArgs
