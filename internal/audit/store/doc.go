// Package store keeps the audit log (package audit) in a JetStream stream, and legal holds in a
// bucket.
//
//	API ──Record──► Writer ──block of entries──► JetStream ──Page──► GET /v1/audit, perdure audit
//	                  │                             ▲
//	                  └──OpenTelemetry log record    └──Expire: removes the oldest blocks
//
// Each tenant has a chain of entries, and the platform has one for what belongs to no tenant.
//
// Rules:
//   - An entry is durable when Writer.Record returns nil, and not before.
//   - A process appends with the expected last sequence of the chain's subject. So two processes
//     never write the same number.
//   - NATS refuses to delete single messages of the stream.
package store
