package console

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
