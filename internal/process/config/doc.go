// Package config reads what a production process is told: environment variables, and flags that
// mirror them. One table says what there is; parsing, --help and docs/reference/configuration.md follow it.
//
//	defaults ◄── environment ◄── flags        the right-hand side wins
//
//	cfg, err := config.Load(config.API, os.Args[1:], os.Environ(), os.Stdout)
//	if errors.Is(err, config.ErrHelp) { return nil }
//
// Rules:
//   - Names that the field has come first (TEMPORAL_*, NATS_*, OPENAI_*, ANTHROPIC_*, GEMINI_*,
//     OTEL_*); our own begin with PERDURE_.
//   - A bad value is an error that names the variable. An empty value counts as not set.
//   - A secret has no flag: command lines are for everyone on the machine to read.
//   - Nothing here opens a connection; package connect does.
package config
