// Package runs tests runs of stock clients: streaming, cancel, busy threads, reconnects, kills of
// the process, threads and long conversations.
package runs

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
