// Package remote tests agents on other servers: servers that others have written, from npm, and
// hostile ones.
package remote

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.MainAlone(m)) }
