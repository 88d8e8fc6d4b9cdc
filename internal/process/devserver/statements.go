package devserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// maxStatements bounds the prepared statements of a connection. Temporal's plugin has about 100
// constant statements; the others are queries of visibility.
const maxStatements = 200

// connector opens SQLite connections that keep their prepared statements. Temporal's plugin
// prepares each statement again whenever it executes it, which takes a fifth of the CPU time of a
// short workflow.
type connector struct {
	driver driver.Driver // of SQLite
	dsn    string
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.Open(c.dsn) }

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c }

// Open implements driver.Driver.
func (c *connector) Open(dsn string) (driver.Conn, error) {
	opened, err := c.driver.Open(dsn)
	if err != nil {
		return nil, err
	}
	conn, complete := opened.(sqliteConn)
	if !complete {
		return nil, errors.Join(fmt.Errorf("a connection of SQLite is a %T, which lacks a method", opened), opened.Close())
	}
	return &statementConn{sqliteConn: conn, idle: make(map[string]sqliteStmt)}, nil
}

// sqliteConn has the methods of a SQLite connection that package sql uses.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStmt has the methods of a SQLite statement that statementConn uses.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// statementConn is a connection that keeps its prepared statements. As every driver.Conn, it is
// used by one goroutine at a time.
type statementConn struct {
	sqliteConn
	idle map[string]sqliteStmt // by text; a statement in use is not in the map
}

// Package sql prepares a statement for each call, unless the connection executes it itself.
var (
	_ driver.ExecerContext  = (*statementConn)(nil)
	_ driver.QueryerContext = (*statementConn)(nil)
)

// BeginTx implements driver.ConnBeginTx.
func (c *statementConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.sqliteConn.BeginTx(context.WithoutCancel(ctx), o)
}

// ExecContext implements driver.ExecerContext. It does not stop when ctx ends: the driver would
// start a goroutine for each statement to watch ctx, and Temporal's writes take microseconds.
func (c *statementConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(context.WithoutCancel(ctx), args)
	return result, errors.Join(err, c.put(query, s))
}

// QueryContext implements driver.QueryerContext.
func (c *statementConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, c.put(query, s))
	}
	return &statementRows{Rows: rows, conn: c, query: query, stmt: s}, nil
}

// take returns an idle statement, or prepares one. The caller puts it back.
func (c *statementConn) take(ctx context.Context, query string) (sqliteStmt, error) {
	if s, found := c.idle[query]; found {
		delete(c.idle, query)
		return s, nil
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, complete := prepared.(sqliteStmt)
	if !complete {
		return nil, errors.Join(fmt.Errorf("a statement of SQLite is a %T, which lacks a method", prepared), prepared.Close())
	}
	return s, nil
}

// put makes a statement idle. It closes the statement if the connection has another one with its
// text, which was prepared while this one was in use, or has maxStatements.
func (c *statementConn) put(query string, s sqliteStmt) error {
	if _, found := c.idle[query]; found || len(c.idle) >= maxStatements {
		return s.Close()
	}
	c.idle[query] = s
	return nil
}

// Close implements driver.Conn.
func (c *statementConn) Close() error {
	var errs []error
	for _, s := range c.idle {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}

// statementRows are the rows of a statement, which becomes idle when they are closed.
type statementRows struct {
	driver.Rows
	conn  *statementConn
	query string
	stmt  sqliteStmt
}

// Close implements driver.Rows.
func (r *statementRows) Close() error {
	return errors.Join(r.Rows.Close(), r.conn.put(r.query, r.stmt))
}
