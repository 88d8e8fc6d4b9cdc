// Command bench measures what durability costs: the same runs against Perdure and against a plain
// proxy that keeps nothing, in one go on one machine.
//
//	           ┌──────────────────── direct ────────────────────┐
//	client ◄───┼── proxy: AG-UI, nothing stored ────────────────┼──► model
//	(this      ├── dev: perdure dev, everything in one process ─┤    (a process
//	 process)  └── apart: api + worker + servers ───────────────┘     of its own)
//
//	go run .            full measurement, written to results
//	go run . -quick     a look, some minutes, written nowhere
//	go run . -profile /tmp/p -systems proxy,dev
//	go run . -systems "" -pipelines "" -scales crowd=1000,parked    only these, at scale
//	go run . -systems "" -scales "" -pipelines steps,map=200        only pipelines
//
// Rules:
//
//   - Every token carries its index and the time at which the model sent it, on the one monotonic
//     clock that all processes of a machine share. The client needs no other knowledge of the model.
//   - Every run is checked: each token once and in order, one terminal event at the end. One run
//     that is not so fails the bench; a number that includes failures would mean nothing.
//   - Only one system is alive at a time. The order is turned around with each repetition, so that
//     what else the machine does at the time does not always meet the same system.
//   - What is published is the median over repetitions, of quantiles within one.
//
// Pipelines are held against plain Temporal workflows, which a process of their own carries out on
// the same servers: one execution at a time, in turns. Those do the same work and keep nothing that
// anybody could watch.
//
// A scale is a load of which the number is the point: viewers of one run, runs that stream at once,
// parked runs. Each is measured once, on api, worker and servers of its own, and fails where one
// viewer is not shown exactly what all others are.
//
// It needs Linux: it reads /proc.
package main
