// Package events takes events from other systems to the runs that wait for them.
//
//	POST /v1/events, webhooks, NATS ──Append──► stream "events" ──Router──► waits that match ─► decide
//	interrupt.notify ──Register──► bucket "waits" ──watch──► Waits: GET /v1/waits, Router
//
// A wait is an interrupt that no person decides: it ends with a time or an event. The bucket has one
// entry for each open wait. Both sides write before they read: an event is durable before the router
// compares it with the waits, and a wait is registered before the kept events are compared with it. So
// one of the two finds the other, whichever comes first.
//
// Rules:
//   - An event is durable when Append returns. Its source and ID identify it: a further one is a
//     repetition as long as the event is kept.
//   - A thread receives an event once. The key of the claim, which names the wait, is created before
//     the wait is decided.
//   - An event and a wait may meet several times, also in several processes. Each step may be repeated:
//     the claim exists, the decision is the same.
package events
