package apinode

import "github.com/perdure/perdure/internal/process/telemetry"

// measure exports what tenants have of their quotas, and the open waits, as metrics until the caller calls
// stop.
func (n *Node) measure() (stop func()) {
	stopQuotas, stopWaits := n.server.MeasureQuotas(), telemetry.ObserveWaits(n.waits.Counts)
	return func() {
		stopQuotas()
		stopWaits()
	}
}
