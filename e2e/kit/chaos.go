package kit

import "flag"

var (
	Chaos  = flag.Bool("chaos", false, "play the whole matrix of faults and phases, and the random schedule")
	Update = flag.Bool("update", false, "write the result of the matrix to docs/internals/reliability.md; needs -chaos")
)
