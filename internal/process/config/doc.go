// Package config reads the configuration of a process: environment variables, and flags that mirror
// them. Parsing, --help and docs/reference/configuration.md derive from one table.
//
//	defaults ◄── environment ◄── flags        the right-hand side takes precedence
//
//	cfg, err := config.Load(config.API, os.Args[1:], os.Environ(), os.Stdout)
//	if errors.Is(err, config.ErrHelp) { return nil }
//
// Rules:
//   - Variables of Temporal, NATS, model providers and OpenTelemetry keep their names and meanings.
//     All others begin with PERDURE_.
//   - An invalid value is an error with the name of the variable. An empty value counts as not set.
//   - A secret has no flag: every user of a machine can read the command lines of its processes.
//   - This package opens no connection; package connect does.
package config
