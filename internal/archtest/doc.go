// Package archtest holds the rules that keep the picture true: who imports whom, what the binaries
// link, what the deployment files may say. It has no code of its own, only tests.
//
//	api   workflows   activities      know of each other only workflows' contract
//	  │       │        │  │  │
//	  ▼       ▼        ▼  ▼  ▼
//	stream  agents  tools llm …       know nobody above them
//	      ▼
//	    agui                          knows nobody
//
// A package that is new has to be given its place in layers_test.go.
package archtest
