// Package approvals tests interrupts of runs: approvals with quorums, questions of tools, results
// of client tools, the inbox and the audit.
package approvals

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
