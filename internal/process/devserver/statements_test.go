package devserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// countingDriver counts the statements that are open on the connections of another driver.
type countingDriver struct {
	driver.Driver
	prepared, closed atomic.Int64
}

func (d *countingDriver) Open(dsn string) (driver.Conn, error) {
	conn, err := d.Driver.Open(dsn)
	if err != nil {
		return nil, err
	}
	return countingConn{sqliteConn: conn.(sqliteConn), driver: d}, nil
}

type countingConn struct {
	sqliteConn
	driver *countingDriver
}

func (c countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.driver.prepared.Add(1)
	return countingStmt{sqliteStmt: s.(sqliteStmt), driver: c.driver}, nil
}

type countingStmt struct {
	sqliteStmt
	driver *countingDriver
}

func (s countingStmt) Close() error {
	s.driver.closed.Add(1)
	return s.sqliteStmt.Close()
}

// openCounting returns a database with one connection of a connector, and the table t with the
// column n of 1 and 2.
func openCounting(t *testing.T) (*sql.DB, *countingDriver) {
	t.Helper()
	registered, err := sql.Open("sqlite", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registered.Close() })
	d := &countingDriver{Driver: registered.Driver()}
	db := sql.OpenDB(&connector{driver: d, dsn: "file:" + filepath.Join(t.TempDir(), "t.db")})
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, stmt := range []string{"CREATE TABLE t (n INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"} {
		if _, err := db.ExecContext(t.Context(), stmt); err != nil {
			t.Fatal(err)
		}
	}
	d.prepared.Store(0) // of the statements above, which remain open
	d.closed.Store(-2)
	return db, d
}

// TestStatementIsPreparedOnce: a connection prepares a statement at its first execution, also if an
// execution fails.
func TestStatementIsPreparedOnce(t *testing.T) {
	t.Parallel()
	db, d := openCounting(t)
	for n := range 5 {
		_, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", n)
		if isDuplicate := n == 1 || n == 2; (err != nil) != isDuplicate {
			t.Errorf("insert %d: %v, want an error only for the numbers in the table", n, err)
		}
	}
	for n := range 5 {
		var got int
		if err := db.QueryRowContext(t.Context(), "SELECT n FROM t WHERE n = ?", n).Scan(&got); err != nil || got != n {
			t.Errorf("select %d = %d, %v", n, got, err)
		}
	}
	if got := d.prepared.Load(); got != 2 {
		t.Errorf("%d statements prepared, want 2", got)
	}
}

// TestStatementInUseIsNotShared: a query that is executed while its own rows are read returns all
// rows in both places.
func TestStatementInUseIsNotShared(t *testing.T) {
	t.Parallel()
	db, _ := openCounting(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	const query = "SELECT n FROM t ORDER BY n"
	pairs := 0
	eachRow(t, tx, query, func() {
		eachRow(t, tx, query, func() { pairs++ })
	})
	if pairs != 4 {
		t.Errorf("%d pairs of rows, want 4", pairs)
	}
}

// eachRow calls f for each row of a query, while its rows are open.
func eachRow(t *testing.T, tx *sql.Tx, query string, f func()) {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		f()
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// TestConnectionClosesItsStatements: a connection keeps at most maxStatements statements, and its
// end closes them.
func TestConnectionClosesItsStatements(t *testing.T) {
	t.Parallel()
	db, d := openCounting(t)
	for n := range 2 * maxStatements {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM t WHERE n = %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if open := d.prepared.Load() - d.closed.Load(); open > maxStatements {
		t.Errorf("%d open statements, want at most %d", open, maxStatements)
	}
	db.SetMaxIdleConns(0)
	if open := d.prepared.Load() - d.closed.Load(); open != 0 {
		t.Errorf("%d open statements after the connection, want none", open)
	}
}

// TestServerKeepsStatements: the connections of Temporal are those of a connector. A stopped server
// has none, and the same process can start another one over the same directory.
func TestServerKeepsStatements(t *testing.T) {
	t.Parallel()
	o := Options{Data: t.TempDir()}
	for range 2 {
		s := mustStart(t, o)
		pool := s.temporal.db.pool
		if _, ok := pool.Driver().(*connector); !ok {
			t.Fatalf("Temporal's connections are those of a %T, want a connector", pool.Driver())
		}
		if got := pool.Stats().OpenConnections; got != connections {
			t.Errorf("%d connections while the server runs, want %d", got, connections)
		}
		mustStop(t, s)
		if got := pool.Stats().OpenConnections; got != 0 {
			t.Errorf("%d connections after the stop, want none", got)
		}
	}
}
