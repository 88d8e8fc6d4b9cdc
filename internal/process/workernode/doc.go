// Package workernode assembles a worker: workflows, activities, models and tools. The binary
// worker, package worker and perdure dev use it.
package workernode
