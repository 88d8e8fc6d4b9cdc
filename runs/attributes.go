package runs

import "go.temporal.io/sdk/temporal"

// Search attributes, for Temporal's own UI. They decide nothing.
var (
	AttributeTenant = temporal.NewSearchAttributeKeyKeyword("PerdureTenant")
	AttributeAgent  = temporal.NewSearchAttributeKeyKeyword("PerdureAgent")
	AttributeRun    = temporal.NewSearchAttributeKeyKeyword("PerdureRun")
)
