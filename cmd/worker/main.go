// Command worker runs Perdure's workflows and activities: it calls models and tools. Start as many
// as you like, on the same NATS and Temporal. "worker --help" lists its flags and environment
// variables. A worker with Go tools and programs of one's own is package worker's.
package main

import "github.com/perdure/perdure/worker"

func main() { worker.Main(worker.Additions{}) }
