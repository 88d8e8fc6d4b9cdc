package runs

import "go.temporal.io/sdk/temporal"

// The search attributes of runs, for Temporal's UI. Perdure does not read them.
var (
	AttributeTenant = temporal.NewSearchAttributeKeyKeyword("PerdureTenant")
	AttributeAgent  = temporal.NewSearchAttributeKeyKeyword("PerdureAgent")
	AttributeRun    = temporal.NewSearchAttributeKeyKeyword("PerdureRun")
)
