// Package archtest has the rules that keep the architecture's picture true: which package imports
// which, what the binaries link, and what the deployment files contain. It consists of tests only.
//
//	api   workflows   activities      import of each other only the contract of workflows
//	  │       │        │  │  │
//	  ▼       ▼        ▼  ▼  ▼
//	stream  agents  tools llm …       import nothing above them
//	      ▼
//	    agui                          imports nothing
//
// A new package needs a place in layers_test.go.
package archtest
