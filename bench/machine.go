package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine describes the hardware and software of a measurement.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, Linux %s, %s", m.CPU, m.Cores, m.Memory, m.Kernel, m.Go)
}

func thisMachine() machine {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return machine{
		CPU: procField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: procField("/proc/meminfo", "MemTotal"),
		Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version(),
	}
}

// procField returns the first value of a field in a file of /proc; "unknown" if the file has no
// such field.
func procField(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// commitOf returns the commit of the tree in a directory, and whether the tree has uncommitted
// changes.
func commitOf(ctx context.Context, dir string) (string, error) {
	commit, err := output(ctx, dir, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	// Results are not part of the measured code.
	changed, err := output(ctx, dir, "git", "status", "--porcelain", "--", ".", ":!bench/results")
	if err != nil {
		return "", err
	}
	if changed != "" {
		commit += "-dirty"
	}
	return commit, nil
}

func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // ours
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
