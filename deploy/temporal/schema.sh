#!/bin/sh
# Creates Temporal's databases, or brings them up to date. May run again at any time. Where the
# database is, and who we are, temporal-sql-tool takes from SQL_*.
set -eu

schema=/etc/temporal/schema/postgresql/v12

for database in temporal temporal_visibility; do
  folder=${database#temporal_}
  temporal-sql-tool --db "$database" create
  temporal-sql-tool --db "$database" setup-schema -v 0.0
  temporal-sql-tool --db "$database" update-schema -d "$schema/$folder/versioned"
done
