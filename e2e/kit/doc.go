// Package kit has the shared parts of the end-to-end tests: Perdure processes, model servers,
// clients and comparisons. It starts the perdure binary as a user does. The clients and the model
// server are packages of other projects.
//
//	stock HttpAgent 1.0.0 ─┐                        ┌─ aimock (OpenAI's API, faults, log of requests)
//	stock HttpAgent 0.0.59 ┼─ HTTP ─► perdure dev ──┘
//	npm's ws and its sockets ┤            │
//	plain SSE reader in Go ┘              └── Temporal's client and replayer inspect it afterwards
//
// Each other directory of e2e tests one area. The tests use the same verbs:
//
//	kit.Shared, kit.Setup(t)   a Perdure for all tests of the area, or for one test
//	kit.SetupCluster(t)        the production processes on their own servers
//	p.Run, p.Follow            one run: all its events, or a follower of its stream
//	p.Kill, p.Stop, p.Start    SIGKILL, SIGTERM, and a start with the same data
//	f.Until…, f.Finish         read events as they arrive, or to the end of the run
//	kit.Script…, m.Answer      set the responses of the model
//	Await…                     wait for a condition
//	kit.Want…                  compare the result with the expected one
//
// A [Cluster] has any number of APIs and workers. Tests start, kill and stop each of them.
// TestLargeCluster has three NATS nodes and Temporal on PostgreSQL. It is skipped if PostgreSQL is
// not installed. In the TestDeploy tests workers have versions.
//
// A [FrontEnd] is the folder of a front-end application with the npm packages of this checkout. A
// [Browser] is a profile of Chromium, whose process all tests of an area share, and a [Tab] one of
// its tabs.
//
// Package chaos injects faults in every phase of a run. Its model server is a [PausableModel],
// which can pause at any token. A [ModelScript] determines what the model and the tool of one run
// do and where they pause, and records their invocations.
//
// Environment variables:
//
//	E2E_OUTAGE=30s       the length of server outages; 10s by default
//	E2E_HISTORIES=DIR    the directory in which the histories of all workflows are stored
//	E2E_PROGRAMS=DIR     the directory of the built programs
//
// Rules:
//   - The clients in node/ only report (drive.mjs, socket.mjs, replay.mjs, browser.mjs, copilotkit_page.mjs). The Go tests check.
//   - Each stream of server-sent events that a [Follower] reads is recorded. At the end of an area the reference
//     clients read all recorded streams. Their errors and warnings fail the area.
//   - All content (prompts, answers, arguments, error bodies) is made with [Marked]. When a process ends, its
//     histories and its Temporal database must not contain the mark, and every history must replay. Logs may have
//     the error bodies of providers, in one attribute.
//   - Tests share one process and one model server, and find their content by its text. A test that stops a
//     process starts a process of its own.
//   - Tests do not sleep. They wait for events and conditions, with a deadline.
package kit
