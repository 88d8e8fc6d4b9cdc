package main

import "log/slog"

// devOptions are the flags of "perdure dev".
type devOptions struct {
	addr, data, agents     string
	agentsForce            bool
	pprof                  string
	temporalPort, natsPort int
	temporalUIPort         int // -1 = no UI
	allowPrivateHosts      bool
	noWorker               bool
	known                  []string
	addrGiven              bool // --addr was given; it has precedence over the variable
	privateGiven           bool // --allow-private-hosts was given; it has precedence over the variable
	logLevel               slog.Level
}

// addresses are the contents of <data>/addresses.json, a file that exists while the process is
// ready. Tests and scripts read it to find the ports.
type addresses struct {
	API        string `json:"api"`
	Temporal   string `json:"temporal"`
	TemporalUI string `json:"temporalUi,omitempty"`
	Namespace  string `json:"namespace"`
	NATS       string `json:"nats"`
	Metrics    string `json:"metrics,omitempty"`
}
