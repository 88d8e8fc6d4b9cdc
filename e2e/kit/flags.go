package kit

import "flag"

// Flags of the tests that inject faults.
var (
	Chaos  = flag.Bool("chaos", false, "run all faults in all phases, and the random schedule")
	Update = flag.Bool("update", false, "write the result of the matrix to docs/internals/reliability.md; needs -chaos")
)
