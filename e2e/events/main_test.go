// Package events tests runs that wait for a time or an event: early and repeated events, kills, and what
// clients see of a wait.
package events

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
