package eventroutes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/cloudevent"
)

// maxBatch bounds the events of a batch.
const maxBatch = 100

// receipt tells that an event is durable.
type receipt struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// Duplicate tells that the tenant had the event: its source and ID are known.
	Duplicate bool `json:"duplicate"`
}

// sendEvents serves POST /v1/events: one event in structured or binary mode, or a batch. The answer
// 202 tells that all are durable. After another answer, the events may be sent again. Errors: 400
// invalid_event, 403 forbidden, 413 too_large, 415 unsupported_media_type.
func (r *Routes) sendEvents(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	if err := r.Access.CheckTenant(ctx, policy.SendEvent); err != nil {
		return err
	}
	received, isBatch, err := r.readEvents(c)
	if err != nil {
		return err
	}
	receipts := make([]receipt, len(received))
	for i, e := range received {
		e.Sender = request.Requester(ctx)
		isNew, err := r.Store.Append(ctx, e)
		if err != nil {
			return err
		}
		receipts[i] = receipt{ID: e.ID, Source: e.Source, Duplicate: !isNew}
	}
	if !isBatch {
		return request.WriteJSON(c, http.StatusAccepted, receipts[0])
	}
	return request.WriteJSON(c, http.StatusAccepted, struct {
		Items []receipt `json:"items"`
	}{receipts})
}

// readEvents reads the events of a request for the tenant of the caller. Errors: 400 invalid_event, 413
// too_large, 415 unsupported_media_type.
func (r *Routes) readEvents(c *gin.Context) (received []*events.Event, isBatch bool, err error) {
	if coding := c.Request.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, false, problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	media, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type")) // "" = binary mode without data
	isBatch = media == cloudevents.ApplicationCloudEventsBatchJSON
	bound := int64(events.MaxEvent)
	if isBatch {
		bound *= maxBatch
	}
	body, err := r.ReadBody(c, bound)
	if err != nil {
		return nil, false, err
	}
	list, err := decodeEvents(media, c.Request.Header, body)
	if err != nil {
		return nil, isBatch, err
	}
	if len(list) == 0 || len(list) > maxBatch {
		return nil, isBatch, invalid("", fmt.Sprintf("must have 1 to %d events, not %d", maxBatch, len(list)))
	}
	tenant := request.Caller(c.Request.Context()).Tenant
	for i := range list {
		pointer := ""
		if isBatch {
			pointer = fmt.Sprintf("/%d", i)
		}
		e, err := cloudevent.Content(list[i])
		if err != nil {
			return nil, isBatch, eventProblem(pointer, err)
		}
		received = append(received, &events.Event{Content: *e, Tenant: tenant, Via: events.ViaAPI})
	}
	return received, isBatch, nil
}

// decodeEvents returns the events of a request: a batch, or one event in structured or binary mode. Errors: 400
// invalid_event.
func decodeEvents(media string, header http.Header, body []byte) ([]*cloudevents.Event, error) {
	switch media {
	case cloudevents.ApplicationCloudEventsJSON:
		one, err := cloudevent.DecodeJSON(body)
		return []*cloudevents.Event{one}, eventProblem("", err)
	case cloudevents.ApplicationCloudEventsBatchJSON:
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil {
			return nil, invalid("", "must be a JSON array of CloudEvents")
		}
		list := make([]*cloudevents.Event, len(batch))
		for i, event := range batch {
			var err error
			if list[i], err = cloudevent.DecodeJSON(event); err != nil {
				return nil, eventProblem(fmt.Sprintf("/%d", i), err)
			}
		}
		return list, nil
	}
	one, err := cloudevent.DecodeBinary(header, body)
	if err != nil {
		return nil, invalid("", "must be a CloudEvent: JSON of type application/cloudevents+json, or the headers ce-id, ce-source, ce-type and ce-specversion")
	}
	return []*cloudevents.Event{one}, nil
}

// eventProblem returns the problem of an invalid event with a pointer. Other errors, and nil, are
// returned unchanged.
func eventProblem(pointer string, err error) error {
	if mistake, ok := errors.AsType[*cloudevent.InvalidError](err); ok {
		return invalid(pointer+mistake.Pointer, mistake.Reason)
	}
	return err
}

// invalid returns the problem of an invalid event.
func invalid(pointer, detail string) *problem.Problem {
	return problem.BadRequest("invalid_event", pointer, detail)
}
