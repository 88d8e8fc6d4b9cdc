package devserver

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// retention is how long Temporal keeps the history of a closed workflow.
const retention = 7 * 24 * time.Hour

// searchAttributes are the custom search attributes of the namespace, all of type Keyword. SQLite
// has ten columns for that type.
var searchAttributes = []string{"PerdureAgent", "PerdureRun", "PerdureTenant"}

// createNamespace writes the namespace with its retention and search attributes into the database,
// unless it exists. The server must not run.
func (d *database) createNamespace(name string) error {
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, nil)
	if err != nil {
		return err
	}
	aliases := map[string]string{} // column → search attribute
	for i, attribute := range searchAttributes {
		aliases[fmt.Sprintf("Keyword%02d", i+1)] = attribute
	}
	ns.Detail.Config.CustomSearchAttributeAliases, ns.Detail.Config.Retention = aliases, durationpb.New(retention)
	return sqliteschema.CreateNamespaces(d.sql, ns)
}
