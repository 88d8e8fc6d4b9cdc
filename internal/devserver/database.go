package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// database is Temporal's SQLite file.
//
// Temporal's plugin keeps one connection pool per file for as long as the process
// lives. Everything here goes through connections of its own, closed before the
// server starts and opened after it stopped.
type database struct {
	sql *config.SQL
}

func newDatabase(path string, t tuning) *database {
	attributes := map[string]string{"mode": "rwc"}
	for pragma, value := range t.pragmas {
		attributes[pragma] = value
	}
	return &database{sql: &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      uriPath(path),
		ConnectAttributes: attributes,
		MaxConns:          t.conns,
		MaxIdleConns:      t.conns,
	}}
}

// uriPath escapes what would end or change the path in the "file:" URI that the
// plugin makes by concatenation.
func uriPath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// prepare makes the file ready for the server: schema, namespace, search
// attributes. It returns the attempts that were running when it was last used.
func (d *database) prepare(ctx context.Context, namespace string) ([]Orphan, error) {
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

func prepare(ctx context.Context, db *sql.DB, namespace string) ([]Orphan, error) {
	if err := ensureSchema(ctx, db); err != nil {
		return nil, err
	}
	if err := updateNamespace(ctx, db, namespace); err != nil {
		return nil, err
	}
	return readOrphans(ctx, db, namespace)
}

// open connects with the driver that the plugin has registered.
func (d *database) open() (*sql.DB, error) {
	query := url.Values{"mode": {"rwc"}}
	for k, v := range d.sql.ConnectAttributes {
		if k != "mode" {
			query.Add("_pragma", k+"="+v)
		}
	}
	return sql.Open("sqlite", "file:"+d.sql.DatabaseName+"?"+query.Encode())
}

// ensureSchema creates the schema in one transaction: a file that was killed
// half-way is empty.
func ensureSchema(ctx context.Context, db *sql.DB) error {
	var tables, known int
	err := db.QueryRowContext(ctx, `SELECT count(*),
		count(CASE WHEN name IN ('executions', 'executions_visibility') THEN 1 END)
		FROM sqlite_master WHERE type = 'table'`).Scan(&tables, &known)
	switch {
	case err != nil:
		return err
	case tables == 0:
		return createSchema(ctx, db)
	case known != 2:
		return errors.New("is no Temporal database")
	}
	return nil
}

func createSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := sqliteschema.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// schemaTx is as much of an AdminDB as setting up a schema needs.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// checkpoint folds the write-ahead log into the file, so that a directory at rest
// is one file that can be copied.
func (d *database) checkpoint() error {
	db, err := d.open()
	if err != nil {
		return err
	}
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, db.Close())
}
