package kit

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"
)

// Flags of the tests that inject faults.
var (
	Chaos  = flag.Bool("chaos", false, "run all faults in all phases, and the random schedule")
	Update = flag.Bool("update", false, "write the result of the matrix to docs/internals/reliability.md; needs -chaos")
)

// ChaosSeed returns and logs the seed of a test's random faults: CHAOS_SEED, or the time if it is not
// a number.
func ChaosSeed(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHAOS_SEED=%d", seed)
	return seed
}
