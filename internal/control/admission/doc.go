// Package admission decides when a call of a model may begin. All workers share what it knows in one
// key-value bucket:
//
//	limit.<provider>         the calls of each worker, and the rate (limit.go, occupancy.go)
//	pause.<provider>.<model> until when the provider wants no calls (pause.go)
//
// Circuit breakers are those of each worker (breaker.go).
//
// Each worker watches the bucket, so the check of a call that needs no limit is a look into memory. A
// call of a limited provider takes one write before it begins, and one after it has ended.
package admission
