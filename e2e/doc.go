// Package e2e tests the whole program from outside: the perdure binary, as anyone would start it,
// with clients and a model server that we did not write.
//
//	stock HttpAgent 1.0.0 ─┐                        ┌─ aimock (OpenAI's API, faults, journal)
//	stock HttpAgent 0.0.59 ┼─ HTTP ─► perdure dev ──┘
//	npm's ws and its sockets ┤            │
//	plain SSE reader in Go ┘              └── Temporal's client and replayer look in afterwards
//
// The TestCluster tests put the production processes in the place of "perdure dev": any number of
// apis and workers on servers of their own, each started, killed and stopped by itself. TestLargeCluster
// has three NATS nodes and Temporal on PostgreSQL, and is skipped where PostgreSQL is not installed.
// E2E_OUTAGE=30s lets the servers stay away longer than the usual 10 s.
//
// Rules:
//   - The clients in node/ only report (drive.mjs, socket.mjs); every judgment is in Go.
//   - Whatever is content, prompts, answers, arguments, error bodies, is made with say, which marks
//     it. When a process ends, its histories and its Temporal database must not hold the mark, and
//     every history must replay.
//   - Tests share one process and one model server, told apart by what they say. A test that ends
//     its process starts one of its own.
//   - Nothing sleeps: tests wait for events and for conditions, with a deadline.
package e2e
