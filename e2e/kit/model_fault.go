package kit

import (
	"io"
	"net/http"
)

func BreaksOff(a *completion) bool {
	if conn, _, err := http.NewResponseController(a.w).Hijack(); err == nil {
		_ = conn.Close()
	}
	return false
}

func ServerError(a *completion) bool {
	const body = `{"error":{"message":"` + Mark + ` is overloaded","type":"server_error"}}`
	if a.begun {
		a.write("data: " + body + "\n\n")
		return false
	}
	a.w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(a.w, body)
	return false
}

// RetryAfter is what a server that is asked too often asks for, in seconds. It is more than the
// engine would wait by itself.
const RetryAfter = 2

func RateLimited(a *completion) bool {
	a.w.Header().Set("Retry-After", "2")
	a.w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(a.w, `{"error":{"message":"`+Mark+`","type":"rate_limit_error"}}`)
	return false
}

func Garbage(a *completion) bool {
	a.write("data: <html>" + Mark + "{{{\n\n")
	return false
}

// NoFinish ends the stream as if it were whole, which it is not: half a text, half a call.
func NoFinish(a *completion) bool {
	a.write("data: [DONE]\n\n")
	return false
}

// HalfCall returns a call whose arguments are cut, and which the model takes for whole.
func HalfCall(a *completion) bool {
	a.end("tool_calls")
	return false
}

func InvalidUTF8(a *completion) bool {
	kind := "text"
	if a.pf.turn == 1 {
		kind = "thought"
		if len(a.pf.Calls) > 0 {
			kind = "arguments"
		}
	}
	a.say(chunk{kind: kind, text: "broken \xff byte "})
	return true
}

// SameIDs returns a second call under the id of the first.
func SameIDs(a *completion) bool {
	for _, p := range a.play.toolCall(1, func(int) string { return Mark + " again " }) {
		a.say(p)
	}
	return true
}

func NeverEnds(a *completion) bool {
	<-a.ctx.Done()
	return false
}
