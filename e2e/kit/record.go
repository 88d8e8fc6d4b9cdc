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

// recorded has every stream that a test has read as server-sent events in Go.
var recorded *recorder

// recorder keeps streams in a file, each once, until they are judged. It is safe for concurrent
// use.
type recorder struct {
	mu    sync.Mutex
	file  *os.File
	known map[[sha256.Size]byte]bool
}

func NewRecorder(path string) (*recorder, error) {
	file, err := os.Create(path)
	return &recorder{file: file, known: map[[sha256.Size]byte]bool{}}, err
}

// Keep records what a reader has read from a run's start on. A reader that began behind an event
// and was not handed what comes before has nothing that can be judged.
func (r *recorder) Keep(test string, f *Follower) error {
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

// recording returns what the reader has read.
func (f *Follower) recording(test string) recording {
	stream := recording{Test: test, Generation: f.In.Generation().Name, Messages: f.In.Messages, State: f.In.State}
	for _, e := range f.Events {
		stream.Events = append(stream.Events, e.Data)
	}
	return stream
}

// sum returns the same for the same stream, whoever reads it.
func (r recording) sum() ([sha256.Size]byte, error) {
	r.Test = ""
	content, err := json.Marshal(r)
	return sha256.Sum256(content), err
}

// Generation is that of the clients that send such an input.
func (in Input) Generation() Generation {
	legacy := in.ProtocolVersion == ""
	return Generations[slices.IndexFunc(Generations, func(g Generation) bool { return g.Legacy == legacy })]
}

// Judge lets the reference clients read all that was recorded: as it came, and, where it is whole,
// as clients replay it that compact what they keep. It tells how many streams there were.
func (r *recorder) Judge(clients references) (int, error) {
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
				errs[i] = errors.Join(errs[i], judge(clients[generation.Name], stream))
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

// judge lets a client read a stream, and again compacted.
func judge(client *referenceClient, stream recording) error {
	end, err := client.Read(stream)
	if err == nil {
		err = end.verdict()
	}
	if err != nil {
		return fmt.Errorf("%s: a stream for %s: %w\n%s", stream.Test, stream.Generation, err, listed(stream.Events))
	}
	if !stream.ended() {
		return nil
	}
	stream.Compact = true
	compacted, err := client.Read(stream)
	if err == nil && compacted.Error != "" {
		err = errors.New("the client refuses it " + compacted.Error)
	}
	if err == nil {
		if diff := cmp.Diff(byOwner(end.Conversation()), byOwner(compacted.Conversation())); diff != "" {
			err = fmt.Errorf("messages (-as it came +compacted):\n%s", diff)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: a stream for %s, compacted: %w\n%s", stream.Test, stream.Generation, err, listed(stream.Events))
	}
	return nil
}

// byOwner puts messages that subagents have said one after the other in the order of who said them.
// Those of agents that spoke at once may change places: when a reader joins between them, and when
// a stream is compacted, since what came between the beginning of a message and its end, such as a
// snapshot, is moved behind it.
func byOwner(messages []map[string]any) []map[string]any {
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

// listed returns a stream for people, an event a line.
func listed(events []json.RawMessage) string {
	var b bytes.Buffer
	for i, e := range events {
		fmt.Fprintf(&b, "%4d %.300s\n", i, e)
	}
	return b.String()
}
