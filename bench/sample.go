package main

// sample has the client's timings of a number of runs, in microseconds.
type sample struct {
	first  []int64 // per run, from the request to its first token
	before []int64 // per run, from the request to when the model sent that token
	added  []int64 // per token, from the model's send to the client's receipt
	total  []int64 // per run, from the request to its terminal event
	events int
}

func (s *sample) add(o *sample) {
	s.first = append(s.first, o.first...)
	s.before = append(s.before, o.before...)
	s.added = append(s.added, o.added...)
	s.total = append(s.total, o.total...)
	s.events += o.events
}
