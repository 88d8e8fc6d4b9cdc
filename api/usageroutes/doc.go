// Package usageroutes serves the report of what runs have used.
package usageroutes
