// Package llmtest is what every provider of package llm must pass: one suite
// of conversations with a server that speaks the provider's wire protocol,
// well and badly.
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
//	  ▲                         │                     │ Encoder, of the provider's test
//	  └──────── chunks ─────────┘ ◄──── events ───────┘
//
// [Stream] alone serves models without a wire: it checks that any stream keeps
// the rules. The suite looks for leaked goroutines when it is through, so Run
// must not be called while other tests of the package are running.
package llmtest
