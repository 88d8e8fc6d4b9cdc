// Package clients tests clients: CopilotKit, pages in a browser, WebSockets, the command line, and
// viewers of each kind of run.
package clients

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
