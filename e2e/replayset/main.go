// Command replayset chooses the histories in workflows/testdata/replay from those that the
// end-to-end tests have saved. It keeps a small set that covers every block of the workflows' code,
// and every two consecutive commands, that any saved history covers. It names each history after
// its workflow and the function of which it adds most blocks.
//
//	replayset SAVED KEPT
//
// It measures its own coverage, so it must be built with -cover, as "make histories" does. It skips
// histories that do not replay, since they belong to programs of other tests.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/coverage"
	"slices"
	"strings"

	"github.com/perdure/perdure/workflows/replaytest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: replayset SAVED KEPT")
		os.Exit(2)
	}
	if err := choose(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "replayset:", err)
		os.Exit(1)
	}
}

// maxSize is the maximal size of a kept history in bytes. Smaller histories cover the same code.
const maxSize = 300 << 10

// candidate is a saved history and what its replay covers.
type candidate struct {
	file     string
	workflow string // the type, without its version
	size     int
	features map[string]bool // blocks of code, and pairs of commands
}

func choose(saved, kept string) error {
	files, err := filepath.Glob(filepath.Join(saved, "*.json"))
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "replayset-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := coverage.WriteMetaDir(scratch); err != nil {
		return fmt.Errorf("%w (build with -cover -covermode=atomic)", err)
	}
	var all []candidate
	skipped := 0
	for _, file := range files {
		c, err := replay(file, scratch)
		if err != nil {
			return err
		}
		if c == nil {
			skipped++
			continue
		}
		all = append(all, *c)
	}
	functions, err := functionsIn("workflows")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	if err := os.MkdirAll(kept, 0o755); err != nil { //nolint:gosec // files of the repository
		return err
	}
	covered, names, chosen := map[string]bool{}, map[string]int{}, 0
	for {
		best := next(all, covered)
		if best == nil {
			break
		}
		name := best.workflow + "-" + functions.most(best.features, covered)
		chosen++
		names[name]++
		if n := names[name]; n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		maps.Copy(covered, best.features)
		if err := keep(best.file, filepath.Join(kept, name+".json")); err != nil {
			return err
		}
	}
	fmt.Printf("%d of %d histories kept, %d left out, %d blocks and pairs of commands covered\n", chosen, len(all), skipped, len(covered))
	return nil
}

// next returns the history that covers most uncovered features, and the smallest of those; nil = no
// history covers any.
func next(all []candidate, covered map[string]bool) *candidate {
	var best *candidate
	most := 0
	for i := range all {
		c, n := &all[i], 0
		for b := range c.features {
			if !covered[b] {
				n++
			}
		}
		if n > most || n > 0 && n == most && c.size < best.size {
			best, most = c, n
		}
	}
	return best
}

var workflowType = regexp.MustCompile(`"workflowType":\s*\{\s*"name":\s*"([a-z.]+)\.v1"`)

// replay measures the blocks of code that a replay runs; nil = the history does not replay.
func replay(file, scratch string) (*candidate, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kind := workflowType.FindSubmatch(body)
	if len(body) > maxSize {
		kind = nil
	}
	if err := coverage.ClearCounters(); err != nil {
		return nil, err
	}
	if replays := kind != nil && replaytest.Replay(file) == nil; !replays {
		return nil, nil
	}
	counters, err := filepath.Glob(filepath.Join(scratch, "covcounters.*"))
	if err != nil {
		return nil, err
	}
	for _, old := range counters {
		if err := os.Remove(old); err != nil {
			return nil, err
		}
	}
	if err := coverage.WriteCountersDir(scratch); err != nil {
		return nil, err
	}
	profile := filepath.Join(scratch, "profile.txt")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", scratch, "-o", profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("covdata: %w: %s", err, out)
	}
	features, err := blocksIn(profile)
	if err != nil {
		return nil, err
	}
	commands := command.FindAllString(string(body), -1)
	for i := 1; i < len(commands); i++ {
		features[commands[i-1]+" "+commands[i]] = true
	}
	return &candidate{file, strings.ReplaceAll(string(kind[1]), ".", "-"), len(body), features}, nil
}

// command matches the commands of a history: types of events, and names of activities, signals and
// updates.
var command = regexp.MustCompile(`"EVENT_TYPE_(ACTIVITY_TASK_SCHEDULED|START_CHILD\w+|TIMER_\w+|SIGNAL_\w+|MARKER_RECORDED|WORKFLOW_EXECUTION_\w+|UPSERT\w+)"|"name":\s*"[a-z]+\.[a-z.]+\.v1"|"signalName":\s*"\w+"`)

// blocksIn returns the covered blocks of a coverage profile.
func blocksIn(profile string) (map[string]bool, error) {
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	blocks := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if block, run := strings.CutSuffix(lines.Text(), " 0"); !run {
			block, _, _ = strings.Cut(block, " ")
			blocks[block] = true
		}
	}
	return blocks, lines.Err()
}

// function is the position of a function in the source.
type function struct {
	file, name  string
	first, last int // lines
}

type functions []function

func functionsIn(dir string) (functions, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	var all functions
	set := token.NewFileSet()
	for _, file := range files {
		parsed, parseErr := parser.ParseFile(set, file, nil, 0)
		if parseErr != nil {
			return nil, errors.Join(err, parseErr)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all = append(all, function{filepath.Base(file), f.Name.Name, set.Position(f.Pos()).Line, set.Position(f.End()).Line})
			}
		}
	}
	return all, err
}

var capital = regexp.MustCompile(`[A-Z]+`)

// most returns the name, in kebab case, of the function with most uncovered blocks.
func (all functions) most(blocks, covered map[string]bool) string {
	counts := map[string]int{}
	for b := range blocks {
		if covered[b] {
			continue
		}
		path, lines, _ := strings.Cut(b, ":")
		var line int
		_, _ = fmt.Sscanf(lines, "%d.", &line)
		if i := slices.IndexFunc(all, func(f function) bool { return f.file == filepath.Base(path) && f.first <= line && line <= f.last }); i >= 0 {
			counts[all[i].name]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if n := counts[b] - counts[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	if len(names) == 0 {
		return "commands"
	}
	return strings.TrimPrefix(capital.ReplaceAllStringFunc(names[0], func(s string) string { return "-" + strings.ToLower(s) }), "-")
}

// identities matches the machine and the process in a history.
var identities = regexp.MustCompile(`("identity":\s*)"[^"]*"`)

// keep copies a history without the names of machines.
func keep(from, to string) error {
	body, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	text := identities.ReplaceAllString(string(body), `$1"worker"`)
	text = strings.ReplaceAll(text, `"`+host+":", `"host:`)
	return os.WriteFile(to, []byte(text), 0o644) //nolint:gosec // files of the repository
}
