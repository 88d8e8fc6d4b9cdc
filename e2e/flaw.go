package e2e

import (
	"io"
	"net/http"
)

func breaksOff(a *speech) bool {
	if conn, _, err := http.NewResponseController(a.w).Hijack(); err == nil {
		_ = conn.Close()
	}
	return false
}

func serverError(a *speech) bool {
	const body = `{"error":{"message":"` + mark + ` is overloaded","type":"server_error"}}`
	if a.begun {
		a.write("data: " + body + "\n\n")
		return false
	}
	a.w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(a.w, body)
	return false
}

// retryAfter is what a server that is asked too often asks for, in seconds. It is more than the
// engine would wait by itself.
const retryAfter = 2

func rateLimited(a *speech) bool {
	a.w.Header().Set("Retry-After", "2")
	a.w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(a.w, `{"error":{"message":"`+mark+`","type":"rate_limit_error"}}`)
	return false
}

func garbage(a *speech) bool {
	a.write("data: <html>" + mark + "{{{\n\n")
	return false
}

// noFinish ends the stream as if it were whole, which it is not: half a text, half a call.
func noFinish(a *speech) bool {
	a.write("data: [DONE]\n\n")
	return false
}

// halfCall returns a call whose arguments are cut, and which the model takes for whole.
func halfCall(a *speech) bool {
	a.end("tool_calls")
	return false
}

func invalidUTF8(a *speech) bool {
	kind := "text"
	if a.pf.turn == 1 {
		kind = "thought"
		if len(a.pf.calls) > 0 {
			kind = "arguments"
		}
	}
	a.say(piece{kind: kind, text: "broken \xff byte "})
	return true
}

// sameIDs returns a second call under the id of the first.
func sameIDs(a *speech) bool {
	for _, p := range a.play.toolCall(1, func(int) string { return mark + " again " }) {
		a.say(p)
	}
	return true
}

func neverEnds(a *speech) bool {
	<-a.ctx.Done()
	return false
}
