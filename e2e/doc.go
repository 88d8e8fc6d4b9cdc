// Package e2e tests the whole program from outside: the perdure binary, as anyone would start it,
// with clients and a model server that we did not write.
//
//	stock HttpAgent 1.0.0 ─┐                        ┌─ aimock (OpenAI's API, faults, journal)
//	stock HttpAgent 0.0.59 ┼─ HTTP ─► perdure dev ──┘
//	npm's ws and its sockets ┤            │
//	plain SSE reader in Go ┘              └── Temporal's client and replayer look in afterwards
//
// The TestCluster tests put the production processes in the place of "perdure dev": any number of
// apis and workers on servers of their own, each started, killed and stopped by itself.
// TestLargeCluster has three NATS nodes and Temporal on PostgreSQL, and is skipped where PostgreSQL
// is not installed. E2E_OUTAGE=30s lets the servers stay away longer than the usual 10 s. In the
// TestDeploy tests workers have versions. E2E_HISTORIES=DIR keeps the histories of all workflows.
//
// TestMatrix and TestSchedule ("make chaos") break things in every phase of a run. Their model is a
// stage, which can stand still at any token and knows what it said; their tools report to it:
//
//	stage (model, watched tools, journal) ◄── perdure dev, or apis and workers ──► actor (a run and its reader)
//	play   what model and tool of one run do, and where it stands still
//	phase  a moment of a run          fault  what befalls it          verdict  what must hold
//
// Pipelines are held against one another: a workshop's model and tools answer as they are asked,
// and keep a journal, so that a run that is killed, cancelled or continued has to come to what an
// undisturbed one does:
//
//	workshop  model and tools       errand  a run and who watches it       product  what it comes to
//
// Rules:
//   - The clients in node/ only report (drive.mjs, socket.mjs, replay.mjs, browser.mjs); every judgment is in Go.
//   - Every stream that a test reads as server-sent events in Go is recorded. When all tests have run, the
//     reference clients read them too; what they refuse or complain of fails the suite.
//   - Whatever is content, prompts, answers, arguments, error bodies, is made with say, which marks
//     it. When a process ends, its histories and its Temporal database must not hold the mark, and
//     every history must replay. The log may hold the bodies of providers' errors, in one attribute.
//   - Tests share one process and one model server, told apart by what they say. A test that ends
//     its process starts one of its own.
//   - Nothing sleeps: tests wait for events and for conditions, with a deadline.
package e2e
