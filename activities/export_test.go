package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
)

func init() {
	sendBeat = func(ctx context.Context, failures int) error {
		activity.RecordHeartbeat(ctx, failures)
		return nil
	}
}

// Afterwards is tested by itself: an outage that lasts is too long for a test.
var Afterwards = contextAfter

// ShownArgs is for tests.
var ShownArgs = shownArgs

// CanonicalDigest is for tests.
var CanonicalDigest = canonicalDigest
