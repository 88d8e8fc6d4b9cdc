package request

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
)

// Answers bounds the memory of the answers to GET requests that clients have not read yet. Streams
// have a bound of their own, and the answers of commands are small. It is safe for concurrent use.
type Answers struct {
	room *room
	// encoders has one element for each value that is encoded at this moment. Encoding waits for no
	// client, so the bound costs no throughput.
	encoders chan struct{}
}

// NewAnswers returns Answers with room for maxBytes bytes.
func NewAnswers(maxBytes int64) *Answers {
	return &Answers{newRoom(maxBytes), make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// answerKey is the key of a request's *answer in its gin.Context.
type answerKey struct{}

// answer is the memory of one answer.
type answer struct {
	share
	*Answers
}

// CountAnswer is middleware. It releases the room of an answer when the client has read the answer.
// Only GET requests have answers that take room: a command must not fail after its effect.
func (a *Answers) CountAnswer(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	held := &answer{share{room: a.room}, a}
	c.Set(answerKey{}, held)
	defer held.release()
	c.Next()
}

// answerOf returns the memory of a request's answer; nil = the answer has no bound.
func answerOf(c *gin.Context) *answer {
	value, _ := c.Get(answerKey{})
	held, _ := value.(*answer)
	return held
}

// HoldAnswer takes the room for an answer of the given number of bytes, less what earlier calls of
// the same request have taken. It does not wait: a node without room is a 503 node_full.
func HoldAnswer(c *gin.Context, bytes int) error {
	if held := answerOf(c); held != nil && !held.grow(bytes) {
		return problem.Full("memory for answers that clients have not read")
	}
	return nil
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
// takes room only when its size is known.
func encode(c *gin.Context, value any) ([]byte, error) {
	if held := answerOf(c); held != nil {
		select {
		case held.encoders <- struct{}{}:
			defer func() { <-held.encoders }()
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
