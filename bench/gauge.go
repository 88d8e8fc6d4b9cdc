package main

import (
	"context"
	"time"
)

// gauge measures the cost of phases for the processes of a system.
type gauge struct {
	running *running
	bench   []int // IDs of the client's and the model's processes
}

// phase executes the runs of a phase, discards the first runs, and adds the results of the others.
func (g *gauge) phase(ctx context.Context, l *load, ph phase, m measures) error {
	if ph.warmup > 0 {
		if _, err := l.drive(ctx, ph, ph.warmup); err != nil {
			return err
		}
	}
	before, err := g.read()
	if err != nil {
		return err
	}
	s, err := l.drive(ctx, ph, ph.runs)
	if err != nil {
		return err
	}
	after, err := g.read()
	if err != nil {
		return err
	}
	m.add(ph, s, after.minus(before), len(g.running.processes) > 0)
	return nil
}

// reading is the state of the machine's clocks.
type reading struct {
	at      time.Time
	system  time.Duration // CPU time of the measured processes
	bench   time.Duration // of the client and the model
	machine time.Duration // of all processes
}

// span is the difference between two readings.
type span struct{ wall, system, others time.Duration }

func (r reading) minus(o reading) span {
	system, bench := r.system-o.system, r.bench-o.bench
	return span{wall: r.at.Sub(o.at), system: system, others: max(0, r.machine-o.machine-system-bench)}
}

// read reads the clocks.
func (g *gauge) read() (r reading, err error) {
	if r.machine, err = cpuOfMachine(); err != nil {
		return r, err
	}
	if r.system, err = g.running.cpu(); err != nil {
		return r, err
	}
	for _, pid := range g.bench {
		cpu, err := cpuOf(pid)
		if err != nil {
			return r, err
		}
		r.bench += cpu
	}
	r.at = time.Now()
	return r, nil
}

// idleTime is how long a system is left alone before its idle memory is measured.
const idleTime = 2 * time.Second

// idle adds the memory of the system's processes before their first run.
func (g *gauge) idle(ctx context.Context, m measures) error {
	if len(g.running.processes) == 0 {
		return nil
	}
	if err := wait(ctx, idleTime); err != nil {
		return err
	}
	for _, p := range g.running.processes {
		now, _, err := memoryOf(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		mib := float64(now) / (1 << 20)
		m[memoryIdle] += mib
		if p.name == "api" {
			m[idleAPI] = mib
		}
	}
	return nil
}

// memory adds the total memory of the system's processes.
func (g *gauge) memory(m measures) error {
	if len(g.running.processes) == 0 {
		return nil
	}
	for _, p := range g.running.processes {
		now, peak, err := memoryOf(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		m[memoryEnd] += float64(now) / (1 << 20)
		m[memoryPeak] += float64(peak) / (1 << 20)
	}
	return nil
}
