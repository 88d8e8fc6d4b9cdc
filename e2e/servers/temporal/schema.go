package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql" // the plugin
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema"
	version "go.temporal.io/server/schema/postgresql/v12"
)

const (
	plugin             = "postgres12"
	database           = "temporal"
	visibilityDatabase = "temporal_visibility"
)

// setUpSchema creates the two databases with the schema that the server embeds for new
// installations, unless they exist.
func (s settings) setUpSchema() error {
	if err := s.setUp(database, "temporal", version.Version); err != nil {
		return fmt.Errorf("database %s: %w", database, err)
	}
	if err := s.setUp(visibilityDatabase, "visibility", version.VisibilityVersion); err != nil {
		return fmt.Errorf("database %s: %w", visibilityDatabase, err)
	}
	return nil
}

func (s settings) setUp(name, folder, version string) error {
	if err := s.administer("", func(db sqlplugin.AdminDB) error { return db.CreateDatabase(name) }); err != nil {
		return err
	}
	return s.administer(name, func(db sqlplugin.AdminDB) error {
		if have, err := db.ReadSchemaVersion(name); err == nil && have == version {
			return nil
		}
		if err := db.CreateSchemaVersionTables(); err != nil {
			return err
		}
		text, err := fs.ReadFile(schema.Assets(), "postgresql/v12/"+folder+"/schema.sql")
		if err != nil {
			return err
		}
		statements, err := persistence.LoadAndSplitQueryFromReaders([]io.Reader{bytes.NewReader(text)})
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if err := db.Exec(statement); err != nil {
				return fmt.Errorf("%.80s: %w", statement, err)
			}
		}
		return db.UpdateSchemaVersion(name, version, version) // last: it marks the schema as complete
	})
}

// administer runs work on a database; "" is the default database.
func (s settings) administer(name string, work func(sqlplugin.AdminDB) error) error {
	db, err := sql.NewSQLAdminDB(sqlplugin.DbKindUnknown, s.store(name), resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return work(db)
}
