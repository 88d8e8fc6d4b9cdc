// Command bench measures the cost of durability: the same runs against Perdure and against systems that
// store nothing, in one session on one machine.
//
//	           ┌──────────────────── direct ────────────────────┐
//	           ├── proxy: AG-UI, nothing stored ────────────────┤
//	client ◄───┼── copilotkit: its runtime, nothing stored ─────┼──► model
//	(this      ├── dev: perdure dev, everything in one process ─┤    (a process
//	 process)  └── apart: api + worker + servers ───────────────┘     of its own)
//
//	go run .            full measurement, written to results
//	go run . -quick     a short measurement of less than five minutes, not stored
//	go run . -base HEAD~1    this tree and another commit in turns
//	go run . -profile /tmp/p -systems proxy,dev
//	go run . -systems "" -pipelines "" -scales crowd=1000,parked    only these, at scale
//	go run . -systems "" -scales "" -pipelines steps,map=200        only pipelines
//
// Rules:
//
//   - Every token has its index and the time at which the model sent it, by the monotonic clock that
//     all processes of a machine share. The client needs nothing else from the model.
//   - Every run is checked: each token once and in order, one terminal event at the end. One invalid
//     run fails the bench, because a number that includes failures has no meaning.
//   - Only one system runs at a time. The order is reversed in each repetition, so that other load
//     of the machine does not always affect the same system.
//   - Reports have the median over repetitions, of quantiles within one repetition.
//
// Pipelines are compared with plain Temporal workflows, which a separate process executes on the
// same servers: one execution at a time, alternately. They do the same work, but clients cannot watch
// their progress.
//
// A scale is a load with a number: approvals, killed workers, viewers of one run, parked runs. Each is
// measured once, on a system of its own. The scale crowd fails if one viewer does not receive exactly the
// events that all others receive.
//
// With -base, the programs of the other commit are built in a worktree, and both builds are measured in
// rounds: ABBA. Client, model and plain workflows are those of this tree. A difference is beyond noise if
// the ranges of the rounds do not overlap.
//
// The bench needs Linux, because it reads /proc.
package main
