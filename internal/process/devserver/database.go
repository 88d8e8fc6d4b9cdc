package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	temporalsql "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
)

// database is Temporal's SQLite file.
//
// Temporal's plugin keeps one connection pool per file for the life of the process. openPool and
// closePool open and close its connections. The other methods of database use connections of their
// own, which they close before the server starts, or open after it has stopped.
type database struct {
	path string
	sql  *config.SQL
	pool *sqlx.DB // that of Temporal's plugin; set by openPool
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
// the tasks that were under way when the last server of the file ended.
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
	if err := d.openPool(); err != nil {
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
func (d *database) open() (*sql.DB, error) { return sql.Open("sqlite", d.dsn()) }

// dsn returns the data source name of the file, as Temporal's plugin builds it.
func (d *database) dsn() string {
	query := url.Values{"mode": {"rwc"}, "_time_format": {"sqlite"}}
	for k, v := range d.sql.ConnectAttributes {
		if k != "mode" {
			query.Add("_pragma", k+"="+v)
		}
	}
	return "file:" + d.sql.DatabaseName + "?" + query.Encode()
}

// openPool lets the pool of Temporal's plugin open connections that keep their prepared statements.
// The plugin has no option for that, so openPool replaces the pool before Temporal uses it.
func (d *database) openPool() error {
	db, err := temporalsql.NewSQLDB(sqlplugin.DbKindUnknown, d.sql, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	if d.pool, err = poolOf(db); err != nil {
		return err
	}
	if _, replaced := d.pool.Driver().(*connector); !replaced {
		original := d.pool.DB
		d.pool.DB = sql.OpenDB(&connector{driver: original.Driver(), dsn: d.dsn()})
		d.pool.SetMaxOpenConns(connections)
		if err := original.Close(); err != nil {
			return err
		}
	}
	d.pool.SetMaxIdleConns(connections)
	return nil
}

// closePool closes the connections of the pool. openPool can open it again.
func (d *database) closePool() {
	if d.pool != nil {
		d.pool.SetMaxIdleConns(0)
	}
}

// poolOf returns the connection pool of a database of Temporal's plugin, which does not export it.
func poolOf(db sqlplugin.GenericDB) (*sqlx.DB, error) {
	field := reflect.Indirect(reflect.ValueOf(db)).FieldByName("db")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*sqlx.DB]() {
		return nil, fmt.Errorf("the database of Temporal's plugin, %T, has no field db with a connection pool", db)
	}
	return (*sqlx.DB)(field.UnsafePointer()), nil
}

// checkpoint moves the write-ahead log into the file, so that the directory of a stopped server has
// the database in one file that can be copied.
func (d *database) checkpoint() error {
	d.closePool()
	db, err := d.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, db.Close())
}
