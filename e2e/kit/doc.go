// Package kit is what the end-to-end tests share: processes of Perdure, model servers, clients, and
// comparisons. It starts the perdure binary as a user would, with clients and a model server that
// this project did not write.
//
//	stock HttpAgent 1.0.0 ─┐                        ┌─ aimock (OpenAI's API, faults, journal)
//	stock HttpAgent 0.0.59 ┼─ HTTP ─► perdure dev ──┘
//	npm's ws and its sockets ┤            │
//	plain SSE reader in Go ┘              └── Temporal's client and replayer look in afterwards
//
// Each folder beside the kit tests one area. Its tests use the same verbs:
//
//	kit.Shared, kit.Setup(t)   a Perdure for all tests of the area, or for one test
//	kit.SetupCluster(t)        the production processes on servers of their own
//	p.Run, p.Follow            one run: all its events, or a follower of its stream
//	p.Kill, p.Stop, p.Start    SIGKILL, SIGTERM, and another start with the same data
//	f.Until, f.Finish          events as they arrive
//	kit.WantMessages, …        compare what arrived with what a test wants
//
// A [Cluster] has any number of APIs and workers, each started, killed and stopped by itself.
// TestLargeCluster has three NATS nodes and Temporal on PostgreSQL, and is skipped where PostgreSQL
// is not installed. E2E_OUTAGE=30s lets servers stay away longer than 10 s. In the TestDeploy tests
// workers have versions. E2E_HISTORIES=DIR keeps the histories of all workflows. E2E_PROGRAMS=DIR
// has programs that are built already.
//
// Package chaos breaks things in every phase of a run. Its model server is a [PausableModel], which
// stops at any token and keeps a journal of its invocations. A [ModelScript] is what the model and
// the tool of one run do, and where they stop.
//
// Rules:
//   - The clients in node/ only report (drive.mjs, socket.mjs, replay.mjs, browser.mjs); every judgment is in Go.
//   - Every stream that a test reads as server-sent events in Go is recorded. When all tests of an area have run, the
//     reference clients read them too; what they refuse or complain of fails the area.
//   - All content (prompts, answers, arguments, error bodies) is made with [Say], which marks it. When a process ends, its histories and its Temporal
//     database must not contain the mark, and every history must replay. The log may contain the bodies of providers' errors, in one attribute.
//   - Tests share one process and one model server, and find their own content by its text. A test that ends its process starts one of its own.
//   - Nothing sleeps: tests wait for events and for conditions, with a deadline.
package kit
