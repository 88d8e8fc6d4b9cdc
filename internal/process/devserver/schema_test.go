package devserver

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// openTestDB opens a new database.
func openTestDB(t *testing.T) (*database, *sql.DB) {
	t.Helper()
	d := newDatabase(filepath.Join(t.TempDir(), "temporal.db"))
	db, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := ensureSchema(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return d, db
}

// mustExec executes a statement.
func mustExec(t *testing.T, db *sql.DB, stmt string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), stmt); err != nil {
		t.Fatalf("%s: %v", stmt, err)
	}
}

func TestSchemaIsCreatedOnce(t *testing.T) {
	t.Parallel()
	_, db := openTestDB(t)
	if err := ensureSchema(t.Context(), db); err != nil {
		t.Errorf("second time: %v", err)
	}
}

// TestFullTextFollowsRow: the triggers that replace Temporal's keep the full-text index up to
// date. Queries on list attributes (build IDs, pause reasons) are answered from that index.
func TestFullTextFollowsRow(t *testing.T) {
	t.Parallel()
	_, db := openTestDB(t)
	steps := []struct {
		name, stmt string
		want       int // rows found under the build id "one"
	}{
		{"insert without", `INSERT INTO executions_visibility (namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding)
			VALUES ('n', 'r', '2026-01-01', '2026-01-01', 'w', 't', 1, 'json')`, 0},
		{"gets one", `UPDATE executions_visibility SET search_attributes = '{"BuildIds": "one♡two"}'`, 1},
		{"unrelated change", `UPDATE executions_visibility SET status = 2`, 1},
		{"another value", `UPDATE executions_visibility SET search_attributes = '{"BuildIds": "two"}'`, 0},
		{"and back", `UPDATE executions_visibility SET search_attributes = '{"BuildIds": "one", "Text01": "free text"}'`, 1},
		{"loses it", `UPDATE executions_visibility SET search_attributes = NULL`, 0},
		{"insert with", `INSERT INTO executions_visibility (namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding, search_attributes)
			VALUES ('n', 'r2', '2026-01-01', '2026-01-01', 'w', 't', 1, 'json', '{"BuildIds": "one"}')`, 1},
		{"delete", `DELETE FROM executions_visibility`, 0},
	}
	for _, step := range steps {
		mustExec(t, db, step.stmt)
		var got int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM executions_visibility WHERE rowid IN
			(SELECT rowid FROM executions_visibility_fts_keyword_list('BuildIds:("one")'))`).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != step.want {
			t.Errorf("%s: found %d rows, want %d", step.name, got, step.want)
		}
		for _, fts := range []string{"executions_visibility_fts_text", "executions_visibility_fts_keyword_list"} {
			mustExec(t, db, "INSERT INTO "+fts+"("+fts+") VALUES ('integrity-check')")
		}
	}
}

func TestKeptIndexesExist(t *testing.T) {
	t.Parallel()
	_, db := openTestDB(t)
	for _, name := range visibilityIndexes {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = ?", name).Scan(&n); err != nil || n != 1 {
			t.Errorf("index %s: got %d, %v, want 1", name, n, err)
		}
	}
}

// TestDatabaseIsPrivate: only the owner may read the histories, also in a directory that others may
// read.
func TestDatabaseIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "temporal.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := newDatabase(path).restrict(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600", info.Mode(), err)
	}
}
