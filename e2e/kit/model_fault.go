package kit

import (
	"io"
	"net/http"
)

// ConnectionBreak closes the connection.
func ConnectionBreak(a *completion) bool {
	if conn, _, err := http.NewResponseController(a.w).Hijack(); err == nil {
		_ = conn.Close()
	}
	return false
}

// ServerError responds with HTTP 500 or, if the stream has begun, with an error in the stream.
func ServerError(a *completion) bool {
	const body = `{"error":{"message":"` + Mark + ` is overloaded","type":"server_error"}}`
	if a.started {
		a.write("data: " + body + "\n\n")
		return false
	}
	a.w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(a.w, body)
	return false
}

// RetryAfter is the delay in seconds that RateLimited requests. It is longer than the backoff of the
// worker.
const RetryAfter = 2

// RateLimited responds with HTTP 429 and Retry-After.
func RateLimited(a *completion) bool {
	a.w.Header().Set("Retry-After", "2")
	a.w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(a.w, `{"error":{"message":"`+Mark+`","type":"rate_limit_error"}}`)
	return false
}

// Garbage streams data that is not JSON.
func Garbage(a *completion) bool {
	a.write("data: <html>" + Mark + "{{{\n\n")
	return false
}

// NoFinish ends the stream in the middle of a response, without a finish reason.
func NoFinish(a *completion) bool {
	a.write("data: [DONE]\n\n")
	return false
}

// HalfCall ends the stream in the middle of a call's arguments, with a finish reason.
func HalfCall(a *completion) bool {
	a.end("tool_calls")
	return false
}

// InvalidUTF8 streams a byte that is not UTF-8.
func InvalidUTF8(a *completion) bool {
	kind := "text"
	if a.invocation.turn == 1 {
		kind = "thought"
		if len(a.invocation.Calls) > 0 {
			kind = "arguments"
		}
	}
	a.say(chunk{kind: kind, text: "broken \xff byte "})
	return true
}

// DuplicateCallIDs streams a second call with the ID of the first.
func DuplicateCallIDs(a *completion) bool {
	for _, p := range a.script.toolCall(1, func(int) string { return Mark + " again " }) {
		a.say(p)
	}
	return true
}

// NoEnd sends no more data until the client disconnects.
func NoEnd(a *completion) bool {
	<-a.ctx.Done()
	return false
}
