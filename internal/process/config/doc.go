// Package config reads the configuration of a process: environment variables, and flags that mirror
// them. Parsing, --help and docs/reference/configuration.md derive from one table.
//
//	defaults ◄── environment ◄── flags        the right-hand side wins
//
//	cfg, err := config.Load(config.API, os.Args[1:], os.Environ(), os.Stdout)
//	if errors.Is(err, config.ErrHelp) { return nil }
//
// Rules:
//   - Variables of Temporal, NATS, model providers and OpenTelemetry keep their names and meanings. Others begin with PERDURE_.
//   - An invalid value is an error that names the variable. An empty value counts as not set.
//   - A secret has no flag: every user of the machine can read command lines.
//   - This package opens no connection; package connect does.
package config
