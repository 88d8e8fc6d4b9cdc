package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// ensureSchema creates the schema in an empty file. It does so in one transaction: a file whose
// process was killed meanwhile is still empty. It fails if the file has other tables than
// Temporal's.
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
		return errors.New("is not a Temporal database")
	}
	return nil
}

// createSchema creates Temporal's tables, trimmed by trimVisibility.
func createSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := sqliteschema.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return err
	}
	if err := trimVisibility(ctx, tx); err != nil {
		return fmt.Errorf("trim the visibility schema: %w", err)
	}
	return tx.Commit()
}

// schemaTx implements the part of sqlplugin.AdminDB that creates a schema, on a transaction. Its
// other methods panic.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

// Exec implements sqlplugin.AdminDB.
func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.ExecContext(context.Background(), stmt, args...)
	return err
}

// visibilityIndexes are the indexes of Temporal's visibility table that trimVisibility keeps.
// Temporal's schema has 58 indexes, and copies every row on every change into two full-text tables:
// that is a quarter of the cost of a short workflow. Trimmed it is half of that. The indexes that
// stay serve Perdure's own queries. A query over another attribute scans the namespace, which is
// acceptable on a single node.
var visibilityIndexes = []string{
	"default_idx",
	"by_workflow_id",
	"by_status",
	"by_keyword_01", "by_keyword_02", "by_keyword_03", "by_keyword_04", // see searchAttributes
}

// trimVisibility drops the other indexes, and replaces the triggers of the full-text tables.
func trimVisibility(ctx context.Context, tx *sql.Tx) error {
	indexes, err := queryNames(ctx, tx, `SELECT name FROM sqlite_master
		WHERE tbl_name = 'executions_visibility' AND type = 'index' AND sql IS NOT NULL`)
	if err != nil {
		return err
	}
	var stmts []string
	for _, name := range indexes {
		if !slices.Contains(visibilityIndexes, name) {
			stmts = append(stmts, "DROP INDEX "+name)
		}
	}
	for _, suffix := range []string{"ai", "ad", "au"} {
		stmts = append(stmts, "DROP TRIGGER executions_visibility_"+suffix)
	}
	for _, fts := range []string{"executions_visibility_fts_text", "executions_visibility_fts_keyword_list"} {
		columns, err := queryNames(ctx, tx, "SELECT name FROM pragma_table_info('"+fts+"')")
		if err != nil {
			return err
		}
		stmts = append(stmts, fullTextTriggers(fts, columns)...)
	}
	for _, stmt := range stmts {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", stmt, err)
		}
	}
	return nil
}

// fullTextTriggers returns the triggers that maintain the full-text table fts over some columns of
// the visibility table. A row is in fts only if one of the columns is set, and an update changes
// fts only if one of them changes.
func fullTextTriggers(fts string, columns []string) []string {
	columnsOf := func(row string) string { return row + "." + strings.Join(columns, ", "+row+".") }
	set := func(row string) string { return "COALESCE(" + columnsOf(row) + ") IS NOT NULL" }
	add := fmt.Sprintf("INSERT INTO %s (rowid, %s) SELECT NEW.rowid, %s WHERE %s;",
		fts, strings.Join(columns, ", "), columnsOf("NEW"), set("NEW"))
	// FTS5 deletes from a contentless index by an insert with the command 'delete' and the old
	// values.
	remove := fmt.Sprintf("INSERT INTO %s (%s, rowid, %s) SELECT 'delete', OLD.rowid, %s WHERE %s;",
		fts, fts, strings.Join(columns, ", "), columnsOf("OLD"), set("OLD"))
	trigger := func(event, when, body string) string {
		return fmt.Sprintf("CREATE TRIGGER %s_%s AFTER %s ON executions_visibility WHEN %s BEGIN %s END",
			fts, strings.ToLower(event), event, when, body)
	}
	return []string{
		trigger("INSERT", set("NEW"), add),
		trigger("DELETE", set("OLD"), remove),
		trigger("UPDATE", fmt.Sprintf("(%s) IS NOT (%s)", columnsOf("OLD"), columnsOf("NEW")), remove+" "+add),
	}
}

// queryNames returns the only column of a query, as text.
func queryNames(ctx context.Context, tx *sql.Tx, query string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
