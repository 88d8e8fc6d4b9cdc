package request

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
)

// Answers bounds the memory of the answers to GET requests that clients have not read yet. Streams
// have a bound of their own, and the answers of commands are small. It is safe for concurrent use.
type Answers struct {
	bytes *quota.Bytes
	// encoders has one element for each value that is encoded at this moment. Encoding waits for no
	// client, so the bound costs no throughput.
	encoders chan struct{}
}

// NewAnswers returns Answers that share the memory of bytes.
func NewAnswers(bytes *quota.Bytes) *Answers {
	return &Answers{bytes, make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// answerKey is the key of a request's *answer in its gin.Context.
type answerKey struct{}

// answer is the memory of one answer. held is nil before HoldAnswer.
type answer struct {
	held *quota.Portion
	*Answers
}

// CountAnswer is middleware. It releases the memory of an answer when the client has read the
// answer. Only GET requests have answers that count: a command must not fail after its effect.
func (a *Answers) CountAnswer(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	counted := &answer{Answers: a}
	c.Set(answerKey{}, counted)
	defer func() {
		if counted.held != nil {
			counted.held.Release()
		}
	}()
	c.Next()
}

// answerOf returns the memory of a request's answer; nil = the answer has no bound.
func answerOf(c *gin.Context) *answer {
	value, _ := c.Get(answerKey{})
	counted, _ := value.(*answer)
	return counted
}

// HoldAnswer takes the memory for an answer of the given number of bytes, less what earlier calls of
// the same request have taken. It does not wait. Errors: 503 node_full, and 429 quota_exceeded for a
// caller with its share of the memory.
func HoldAnswer(c *gin.Context, bytes int) error {
	counted := answerOf(c)
	if counted == nil {
		return nil
	}
	if counted.held == nil {
		caller, _ := auth.From(c.Request.Context()) // the middleware that authenticates follows CountAnswer
		counted.held = counted.bytes.Portion(caller)
	}
	return problem.FullIf(counted.held.Grow(bytes), "large answers that clients have not read")
}

// WriteJSON answers with a value as JSON. An error means that nothing was written: the node has no
// room for the answer, or the value cannot be encoded.
func WriteJSON(c *gin.Context, status int, value any) error {
	body, err := encode(c, value)
	if err != nil {
		return err
	}
	return WriteBytes(c, status, "application/json; charset=utf-8", body)
}

// encode encodes a value as JSON. The node encodes few values concurrently, because an encoded value
// takes memory only when its size is known.
func encode(c *gin.Context, value any) ([]byte, error) {
	if counted := answerOf(c); counted != nil {
		select {
		case counted.encoders <- struct{}{}:
			defer func() { <-counted.encoders }()
		case <-c.Request.Context().Done():
			return nil, context.Cause(c.Request.Context())
		}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("api: encode the answer: %w", err)
	}
	return body, nil
}

// WriteBytes answers with an encoded body. An error means that nothing was written: the node has no
// room for the answer.
func WriteBytes(c *gin.Context, status int, contentType string, body []byte) error {
	if err := HoldAnswer(c, len(body)); err != nil {
		return err
	}
	c.Data(status, contentType, body)
	return nil
}
