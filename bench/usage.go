package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: 10 ms, whatever the kernel's own.
const tick = time.Second / 100

// cpuOf returns the CPU time that a process has used, including its ended threads.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(text)
}

// cpu returns the CPU time that a system's processes have used together.
func (r *running) cpu() (time.Duration, error) { return cpuOfAll(r.processes) }

func cpuOfAll(processes []*process) (all time.Duration, err error) {
	for _, p := range processes {
		cpu, err := cpuOf(p.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		all += cpu
	}
	return all, nil
}

// parseStat reads utime and stime. The second field is the program's name in parentheses, which may
// contain any character.
func parseStat(text []byte) (time.Duration, error) {
	i := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[i+1:]))
	if i < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("stat of a process: %q", text)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// memoryOf returns the current and the peak memory of a process, in bytes.
func memoryOf(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var into *int64
		switch name {
		case "VmRSS":
			into = &now
		case "VmHWM":
			into = &peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s of a process: %w", name, err)
		}
		*into = kib << 10
	}
	return now, peak, nil
}

// cpuOfMachine returns the CPU time that all processes of the machine have used.
func cpuOfMachine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("stat of the machine: %q", line)
	}
	var busy int64
	for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat of the machine: %w", err)
		}
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return time.Duration(busy) * tick, nil
}
