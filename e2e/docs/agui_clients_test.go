package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// programFile matches the first line of a JavaScript module that other programs of a page import.
var programFile = regexp.MustCompile(`^// ([\w-]+\.mjs)\n`)

// clientProgram is a program of the page about stock clients, with the client of one generation.
type clientProgram struct {
	name string
	// shown is what the page shows that the program prints.
	shown  string
	cmd    *exec.Cmd
	output kit.Output
}

// TestStockClientPrograms: the programs of the guide about stock clients work as written with both
// generations of HttpAgent. One of them continues after Perdure was killed.
func TestStockClientPrograms(t *testing.T) {
	t.Parallel()
	text, dir := readGuide(t, "guides/agui-clients"), t.TempDir()
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0]) // the same after the restart
	p.Agents = dir
	saveDefinitions(t, dir, text)
	p.InspectAtEnd(t)
	p.Start(t)

	var steady, killed []*clientProgram
	for _, g := range kit.Generations {
		folder := filepath.Join(dir, g.Name)
		modules, err := filepath.Abs(filepath.Join("node", g.Name, "node_modules"))
		if err == nil {
			err = os.Mkdir(folder, 0o700)
		}
		if err == nil {
			err = os.Symlink(modules, filepath.Join(folder, "node_modules"))
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range guideBlock.FindAllStringSubmatch(text, -1) {
			file := fmt.Sprintf("program-%d.mjs", i)
			module := programFile.FindStringSubmatch(block[2])
			if module != nil {
				file = module[1]
			}
			source := strings.ReplaceAll(block[2], "http://127.0.0.1:8080", p.URL(""))
			if err := os.WriteFile(filepath.Join(folder, file), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			if module != nil {
				continue
			}
			program := &clientProgram{name: g.Name + "/" + file, shown: block[3], cmd: exec.CommandContext(t.Context(), "node", file)}
			program.cmd.Dir = folder
			if strings.Contains(source, "runToEnd") {
				killed = append(killed, program)
			} else {
				steady = append(steady, program)
			}
		}
	}
	if len(steady) != 10 || len(killed) != 2 {
		t.Fatalf("the page has %d programs, and %d for a kill", len(steady), len(killed))
	}
	runTogether(t, steady, func() {})
	runTogether(t, killed, func() {
		for _, program := range killed {
			program.output.Await(t, "The story begins.")
		}
		p.Kill()
		p.Start(t)
	})
}

// runTogether runs programs in parallel, calls during when they have started, and compares what
// they print with the page.
func runTogether(t *testing.T, programs []*clientProgram, during func()) {
	t.Helper()
	var running sync.WaitGroup
	for _, program := range programs {
		program.cmd.Stdout, program.cmd.Stderr = &program.output, &program.output
		if err := program.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := program.cmd.Wait(); err != nil {
				t.Errorf("%s: %v", program.name, err)
			}
		})
	}
	during()
	running.Wait()
	for _, program := range programs {
		if program.shown == "" {
			t.Errorf("the page does not show what %s prints", program.name)
		}
		wantLines(t, program.shown, program.output.String())
	}
}
