package kit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Event is one event of a stream.
type Event struct {
	ID   string
	Type string
	Data json.RawMessage
}

// Terminal reports whether the event ends its run.
func (e Event) Terminal() bool { return e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR" }

// Member returns a string member of the event; "" = it has none.
func (e Event) Member(name string) string {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(e.Data, &members) == nil {
		_ = json.Unmarshal(members[name], &value)
	}
	return value
}

// EventStream reads server-sent events in the form of AG-UI's binding: LF, one event a frame, no
// fields but id and data, and comments. The first events of a join have no ids.
type EventStream struct {
	body  io.ReadCloser
	lines *bufio.Reader
}

// ReadEvents returns the events of a response. The stream owns the response body.
func ReadEvents(resp *http.Response) (*EventStream, error) {
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("Content-Type is %q", got)
	}
	return &EventStream{body: resp.Body, lines: bufio.NewReader(resp.Body)}, nil
}

// Close closes the response body.
func (s *EventStream) Close() error { return s.body.Close() }

// Next returns the next event. It returns io.EOF if the server ended the response between two
// frames.
func (s *EventStream) Next() (Event, error) {
	for {
		frame, err := s.frame()
		if err != nil {
			return Event{}, err
		}
		if len(frame) == 1 && strings.HasPrefix(frame[0], ":") {
			continue
		}
		return parseFrame(frame)
	}
}

// frame reads the lines of a frame.
func (s *EventStream) frame() ([]string, error) {
	var frame []string
	for {
		line, err := s.lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && line == "" && len(frame) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case line == "\n":
			return frame, nil
		}
		frame = append(frame, strings.TrimSuffix(line, "\n"))
	}
}

// parseFrame returns the event of a frame.
func parseFrame(frame []string) (Event, error) {
	id, data := "", ""
	hasID, hasData := true, false
	switch len(frame) {
	case 1:
		data, hasData = strings.CutPrefix(frame[0], "data: ")
	case 2:
		id, hasID = strings.CutPrefix(frame[0], "id: ")
		data, hasData = strings.CutPrefix(frame[1], "data: ")
	}
	if !hasID || !hasData || strings.ContainsAny(id+data, "\r") {
		return Event{}, fmt.Errorf("frame %q", frame)
	}
	e := Event{ID: id, Data: json.RawMessage(data)}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(e.Data, &head); err != nil {
		return Event{}, fmt.Errorf("data %q: %w", data, err)
	}
	if head.Type == "" {
		return Event{}, fmt.Errorf("data %q has no type", data)
	}
	e.Type = head.Type
	return e, nil
}
