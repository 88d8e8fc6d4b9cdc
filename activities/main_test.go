package activities_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }
