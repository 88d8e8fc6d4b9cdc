package stream

// WorkerSubject returns the prefix of the subjects on which one worker receives messages of other
// workers; worker is its name. They are not subjects of the stream, and no other process subscribes
// to them: without a subscription of the worker, NATS answers a request with "no responders".
func (l *Log) WorkerSubject(worker string) string { return l.prefix + "-worker." + Token(worker) }
