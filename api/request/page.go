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
// read costs one encoded item in addition to the items. size returns about how many bytes an item
// occupies. The items must be encodable: after a failure the answer ends early, as it does if the
// client is gone. An error means that nothing was written: the node has no room for the answer.
func WritePage[T any](c *gin.Context, items []T, nextCursor string, size func(T) int, encode func(T) ([]byte, error)) error {
	total, largest := 0, 0
	for _, item := range items {
		bytes := size(item)
		total, largest = total+bytes, max(largest, bytes)
	}
	if err := HoldAnswer(c, total+largest); err != nil {
		return err
	}
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
			return nil
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
	return nil
}
