package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// This file reads single messages exactly: a read returns what was written before it. In a cluster
// it asks the stream's leader (JetStream API STREAM.MSG.GET), because a replica may lag.
//
// A server that is no member of a cluster has the only copy of its streams, and answers JetStream's
// direct get (ADR-31) in a third of the time. Nobody can add replicas to such a stream: the server
// must restart as a member of a cluster first, which the connection tells (hasOnlyCopy). A mirror
// may answer direct gets of its origin, and may lag. So only a message of the stream itself counts,
// and the leader confirms that there is none.

// codeNoMessage is JetStream's error code for a sequence or subject without a message.
const codeNoMessage = 10037

// getRequest is a request of JetStream's message get, or of its direct get (ADR-31), of which only
// the latter has Batch and MaxBytes. Seq is the sequence, or the first one with NextFor; the
// subjects may have wildcards.
type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	LastFor  string `json:"last_by_subj,omitempty"`
	NextFor  string `json:"next_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
}

// getResponse is the response of JetStream's message get.
type getResponse struct {
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// storedMessage is a message of a stream.
type storedMessage struct {
	Subject string
	Seq     uint64
	Header  nats.Header // nil = the message has none
	Data    []byte
	Time    time.Time
}

// askStream reads one message of a stream exactly. nil = there is none. It waits at most
// readTimeout. Any other error of JetStream is ErrUnavailable, for instance while the cluster elects
// a leader.
func (l *Log) askStream(ctx context.Context, stream string, req getRequest) (*storedMessage, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if l.hasOnlyCopy() {
		if m, err := l.askServer(ctx, stream, body); m != nil || err != nil {
			return m, err
		}
	}
	return l.askLeader(ctx, stream, body)
}

// hasOnlyCopy reports whether the connected server has the only copy of the log's streams: it is the
// server that had them when the log was opened, and is no member of a cluster.
func (l *Log) hasOnlyCopy() bool {
	return l.onlyServer != "" && l.nc.ConnectedServerName() == l.onlyServer && l.nc.ConnectedClusterName() == ""
}

// onlyServerOf returns the name of the server with the only copy of a stream, if that is the
// connected one; "" = the stream is in a cluster, or on a server that is reached through another one.
func onlyServerOf(nc *nats.Conn, info *jetstream.StreamInfo) string {
	if c := info.Cluster; c != nil && c.Name == "" && c.Leader == nc.ConnectedServerName() {
		return c.Leader
	}
	return ""
}

// askServer sends a direct get for one message. nil = the stream itself has not answered with one.
func (l *Log) askServer(ctx context.Context, stream string, body []byte) (*storedMessage, error) {
	msg, err := l.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream, body)
	switch {
	case errors.Is(err, nats.ErrNoResponders): // the stream does not allow direct gets
		return nil, nil
	case err != nil:
		return nil, asUnavailable(err)
	case msg.Header.Get("Nats-Stream") != stream: // a mirror, or a status
		return nil, nil
	}
	return storedMessageOf(msg)
}

// storedMessageOf returns the stored message of an answer to a direct get, which has the message's
// metadata in headers.
func storedMessageOf(msg *nats.Msg) (*storedMessage, error) {
	seq, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("stream: read: sequence: %w", err)
	}
	written, err := time.Parse(time.RFC3339Nano, msg.Header.Get("Nats-Time-Stamp"))
	if err != nil {
		return nil, fmt.Errorf("stream: message %d: time: %w", seq, err)
	}
	return &storedMessage{Subject: msg.Header.Get("Nats-Subject"), Seq: seq, Header: msg.Header, Data: msg.Data, Time: written}, nil
}

// askLeader sends a message get to the stream's leader; nil = the stream has no such message.
func (l *Log) askLeader(ctx context.Context, stream string, body []byte) (*storedMessage, error) {
	msg, err := l.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, asUnavailable(err)
	}
	var resp getResponse
	if err := json.Unmarshal(msg.Data, &resp); err != nil {
		return nil, fmt.Errorf("stream: read: %w", err)
	}
	switch {
	case resp.Error != nil && resp.Error.Code == codeNoMessage:
		return nil, nil
	case resp.Error != nil:
		return nil, fmt.Errorf("%w: %s (%d)", ErrUnavailable, resp.Error.Description, resp.Error.Code)
	case resp.Message == nil:
		return nil, errors.New("stream: read: answer without a message")
	}
	m := &storedMessage{Subject: resp.Message.Subject, Seq: resp.Message.Seq, Data: resp.Message.Data, Time: resp.Message.Time}
	if len(resp.Message.Header) == 0 {
		return m, nil
	}
	if m.Header, err = nats.DecodeHeadersMsg(resp.Message.Header); err != nil {
		return nil, fmt.Errorf("stream: message %d: header: %w", m.Seq, err)
	}
	return m, nil
}
