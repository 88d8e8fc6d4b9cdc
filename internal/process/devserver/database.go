package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
)

// database is Temporal's SQLite file.
//
// Temporal's plugin keeps one connection pool per file for the life of the process. The methods of
// database use connections of their own, which they close before the server starts, or open after
// it has stopped.
type database struct {
	path string
	sql  *config.SQL
}

// newDatabase returns the database of a file, with the configuration for Temporal. It opens
// nothing.
func newDatabase(path string) *database {
	attributes := map[string]string{"mode": "rwc"}
	for pragma, value := range pragmas {
		attributes[pragma] = value
	}
	return &database{path: path, sql: &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      uriPath(path),
		ConnectAttributes: attributes,
		MaxConns:          connections,
		MaxIdleConns:      connections,
	}}
}

// uriPath escapes the characters that would end or change the path in the "file:" URI. The plugin
// builds that URI by concatenation.
func uriPath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// prepare makes the file ready for the server: schema, namespace and search attributes. It returns
// the activity attempts that were running when the file was last used.
func (d *database) prepare(ctx context.Context, namespace string) ([]Orphan, error) {
	if err := d.restrict(); err != nil {
		return nil, fmt.Errorf("temporal.db: %w", err)
	}
	db, err := d.open()
	if err != nil {
		return nil, err
	}
	orphans, err := prepare(ctx, db, namespace)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("temporal.db: %w", err)
	}
	if err := d.createNamespace(namespace); err != nil {
		return nil, fmt.Errorf("temporal.db: %w", err)
	}
	return orphans, nil
}

// restrict creates the file if it is missing, and lets only the owner read it, whatever the directory
// permits. SQLite gives its other files the same permissions.
func (d *database) restrict() error {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// prepare creates the schema if the file is empty, and reads the orphans.
func prepare(ctx context.Context, db *sql.DB, namespace string) ([]Orphan, error) {
	if err := ensureSchema(ctx, db); err != nil {
		return nil, err
	}
	return readOrphans(ctx, db, namespace)
}

// open opens connections with the driver that Temporal's plugin has registered, and with the same
// pragmas.
func (d *database) open() (*sql.DB, error) {
	query := url.Values{"mode": {"rwc"}}
	for k, v := range d.sql.ConnectAttributes {
		if k != "mode" {
			query.Add("_pragma", k+"="+v)
		}
	}
	return sql.Open("sqlite", "file:"+d.sql.DatabaseName+"?"+query.Encode())
}

// checkpoint moves the write-ahead log into the file, so that the directory of a stopped server has
// the database in one file that can be copied.
func (d *database) checkpoint() error {
	db, err := d.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, db.Close())
}
