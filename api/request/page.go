package request

import (
	"bufio"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
)

// pageBuffer is how much of a page is gathered before it is sent, in bytes.
const pageBuffer = 16 << 10

// WritePage answers with a page of a list as JSON: the members items and, unless it is empty,
// nextCursor. It encodes one item at a time, at the pace of the client, so a client that does not
// read costs one encoded item and not a page. The items must be encodable: after a failure the
// answer ends early, as it does if the client is gone.
func WritePage[T any](c *gin.Context, items []T, nextCursor string, encode func(T) ([]byte, error)) {
	c.Header("Content-Type", "application/json; charset=utf-8")
	c.Status(http.StatusOK)
	w := bufio.NewWriterSize(c.Writer, pageBuffer)
	_, err := w.WriteString(`{"items":[`)
	for i, item := range items {
		if i > 0 && err == nil {
			err = w.WriteByte(',')
		}
		var encoded []byte
		if err == nil {
			encoded, err = encode(item)
		}
		if err == nil {
			_, err = w.Write(encoded)
		}
		if err != nil {
			_ = c.Error(err)
			return
		}
	}
	_ = w.WriteByte(']') // bufio.Writer keeps its first error
	if nextCursor != "" {
		cursor, _ := json.Marshal(nextCursor) // a string is always encodable
		_, _ = w.WriteString(`,"nextCursor":`)
		_, _ = w.Write(cursor)
	}
	_ = w.WriteByte('}')
	if err := w.Flush(); err != nil {
		_ = c.Error(err)
	}
}
