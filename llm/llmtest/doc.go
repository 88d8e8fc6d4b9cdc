// Package llmtest is the conformance suite for providers of package llm. It runs a provider against
// an HTTP server that speaks the provider's protocol, correctly and incorrectly.
//
//	func TestConformance(t *testing.T) {
//		llmtest.Run(t, llmtest.Provider{
//			New:        func(e llmtest.Endpoint) llm.Model { return openai.New(…) },
//			NewEncoder: func() llmtest.Encoder { return &encoder{} },
//			ErrorBody:  func(message string) string { return … },
//		})
//	}
//
//	suite ── llm.Request ──► provider ── HTTP ──► server of the suite
//	  ▲                         │                     │ Encoder, written by the provider's test
//	  └──────── chunks ─────────┘ ◄──── events ───────┘
//
// [Benchmark] measures how fast a provider reads a response.
//
// [Stream] is usable separately, for models without a network protocol: it checks that a stream
// follows the rules of package llm. Run checks for leaked goroutines at its end, so no other test
// of the package may run in parallel with it.
package llmtest
