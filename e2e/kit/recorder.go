package kit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// recorded has every stream that a Follower has read.
var recorded *recorder

// recorder keeps streams in a file, each once, until the reference clients read them. It is safe
// for concurrent use.
type recorder struct {
	mu    sync.Mutex
	file  *os.File
	known map[[sha256.Size]byte]bool
}

// NewRecorder returns a recorder that writes to a file.
func NewRecorder(path string) (*recorder, error) {
	file, err := os.Create(path)
	return &recorder{file: file, known: map[[sha256.Size]byte]bool{}}, err
}

// Add records the events of a follower. It ignores streams that do not begin with RUN_STARTED,
// which a client cannot read on their own.
func (r *recorder) Add(test string, f *Follower) error {
	if len(f.Events) == 0 || f.Events[0].Type != "RUN_STARTED" {
		return nil
	}
	stream := f.recording(test)
	sum, err := stream.sum()
	if err != nil {
		return err
	}
	line, err := json.Marshal(stream)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[sum] {
		return nil
	}
	r.known[sum] = true
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// recording returns the recording of the follower's events.
func (f *Follower) recording(test string) recording {
	stream := recording{Test: test, Generation: f.In.Generation().Name, Messages: f.In.Messages, State: f.In.State}
	for _, e := range f.Events {
		stream.Events = append(stream.Events, e.Data)
	}
	return stream
}

// sum returns a hash that is the same for the same stream in any test.
func (r recording) sum() ([sha256.Size]byte, error) {
	r.Test = ""
	content, err := json.Marshal(r)
	return sha256.Sum256(content), err
}

// Generation returns the generation of clients that send such an input.
func (in Input) Generation() Generation {
	legacy := in.ProtocolVersion == ""
	return Generations[slices.IndexFunc(Generations, func(g Generation) bool { return g.Legacy == legacy })]
}

// Verify makes the reference clients read all recorded streams, as they came and compacted. It
// returns the number of streams.
func (r *recorder) Verify(clients referenceClients) (int, error) {
	defer r.file.Close()
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(r.file)
	var (
		g      errgroup.Group
		queues = map[string]chan recording{}
		errs   = make([]error, len(Generations))
	)
	for i, generation := range Generations {
		queue := make(chan recording, 8)
		queues[generation.Name] = queue
		g.Go(func() error {
			for stream := range queue {
				errs[i] = errors.Join(errs[i], verifyStream(clients[generation.Name], stream))
			}
			return nil
		})
	}
	n, err := 0, error(nil)
	for ; err == nil; n++ {
		var line []byte
		if line, err = lines.ReadBytes('\n'); err != nil {
			break
		}
		var stream recording
		if err = json.Unmarshal(line, &stream); err == nil {
			queues[stream.Generation] <- stream
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	_ = g.Wait() // the errors are in errs
	if !errors.Is(err, io.EOF) {
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// verifyStream makes a client read a stream, and a stream that ends also in its compacted form.
func verifyStream(client *referenceClient, stream recording) error {
	end, err := client.Read(stream)
	if err == nil {
		err = end.check()
	}
	if err != nil {
		return fmt.Errorf("%s: a stream for %s: %w\n%s", stream.Test, stream.Generation, err, formatEvents(stream.Events))
	}
	if !stream.ended() {
		return nil
	}
	stream.Compact = true
	compacted, err := client.Read(stream)
	if err == nil && compacted.Error != "" {
		err = errors.New("the client refuses the stream " + compacted.Error)
	}
	if err == nil {
		if diff := cmp.Diff(sortByOwner(end.Conversation()), sortByOwner(compacted.Conversation())); diff != "" {
			err = fmt.Errorf("messages (-as it came +compacted):\n%s", diff)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: a stream for %s, compacted: %w\n%s", stream.Test, stream.Generation, err, formatEvents(stream.Events))
	}
	return nil
}

// sortByOwner sorts consecutive messages of subagents by subagent. The messages of concurrent
// subagents may change places when a reader joins between them or a stream is compacted. Both move
// what came between the start and the end of a message, such as a snapshot, after the message.
func sortByOwner(messages []map[string]any) []map[string]any {
	owner := func(m map[string]any) string { id, _ := m["subagentRunId"].(string); return id }
	for i := 0; i < len(messages); i++ {
		end := i
		for end < len(messages) && owner(messages[end]) != "" {
			end++
		}
		slices.SortStableFunc(messages[i:end], func(a, b map[string]any) int { return strings.Compare(owner(a), owner(b)) })
		i = max(i, end-1)
	}
	return messages
}

// formatEvents returns a stream for people, one event a line.
func formatEvents(events []json.RawMessage) string {
	var b bytes.Buffer
	for i, e := range events {
		fmt.Fprintf(&b, "%4d %.300s\n", i, e)
	}
	return b.String()
}
