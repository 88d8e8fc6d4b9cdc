package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// retention is how long Temporal remembers a closed workflow.
const retention = 7 * 24 * time.Hour

// searchAttributes are the custom attributes of the namespace, all of type
// Keyword. SQLite has room for ten.
var searchAttributes = []string{"PerdureAgent", "PerdureRun", "PerdureStatus", "PerdureTenant"}

// createNamespace does nothing when the namespace exists.
func (d *database) createNamespace(name string) error {
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, nil)
	if err != nil {
		return err
	}
	if _, err := completeNamespace(ns.Detail.Config); err != nil {
		return err
	}
	return sqliteschema.CreateNamespaces(d.sql, ns)
}

// updateNamespace gives a namespace that an earlier version created what this one
// expects. Done to the row before the server starts, because a running server
// shows a change only after its namespace cache was refreshed.
func updateNamespace(ctx context.Context, db *sql.DB, name string) error {
	detail, err := readNamespace(ctx, db, name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := completeNamespace(detail.Config)
	if err != nil || !changed {
		return err
	}
	blob, err := serialization.NewSerializer().NamespaceDetailToBlob(detail)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE namespaces SET data = ?, data_encoding = ? WHERE name = ?",
		blob.GetData(), blob.GetEncodingType().String(), name)
	return err
}

func readNamespace(ctx context.Context, db *sql.DB, name string) (*persistencespb.NamespaceDetail, error) {
	var data []byte
	var encoding string
	err := db.QueryRowContext(ctx, "SELECT data, data_encoding FROM namespaces WHERE name = ?", name).Scan(&data, &encoding)
	if err != nil {
		return nil, err
	}
	return serialization.NewSerializer().NamespaceDetailFromBlob(persistence.NewDataBlob(data, encoding))
}

// completeNamespace sets the retention and maps missing search attributes to free
// columns.
func completeNamespace(c *persistencespb.NamespaceConfig) (changed bool, err error) {
	if c.GetRetention().AsDuration() != retention {
		c.Retention = durationpb.New(retention)
		changed = true
	}
	if c.CustomSearchAttributeAliases == nil {
		c.CustomSearchAttributeAliases = make(map[string]string)
	}
	aliases := c.CustomSearchAttributeAliases // column → name
	have := slices.Collect(maps.Values(aliases))
	for _, name := range searchAttributes {
		if slices.Contains(have, name) {
			continue
		}
		column, err := freeKeyword(aliases)
		if err != nil {
			return false, fmt.Errorf("search attribute %s: %w", name, err)
		}
		aliases[column] = name
		changed = true
	}
	return changed, nil
}

func freeKeyword(aliases map[string]string) (string, error) {
	for i := 1; i <= 10; i++ {
		column := fmt.Sprintf("Keyword%02d", i)
		if _, taken := aliases[column]; !taken {
			return column, nil
		}
	}
	return "", errors.New("no Keyword column is left")
}
