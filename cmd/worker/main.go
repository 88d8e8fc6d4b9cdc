// Command worker runs Perdure's workflows and activities, which call models and tools. Start any
// number of workers on the same NATS and Temporal. "worker --help" lists its flags and environment
// variables. For a worker with your own Go tools and programs, see package worker.
package main

import "github.com/perdure/perdure/worker"

func main() { worker.Main(worker.Additions{}) }
