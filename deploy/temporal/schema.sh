#!/bin/sh
# Creates or updates Temporal's databases. Safe to repeat. temporal-sql-tool reads the address and the
# credentials from SQL_*.
set -eu

schema=/etc/temporal/schema/postgresql/v12

for database in temporal temporal_visibility; do
  folder=${database#temporal_}
  temporal-sql-tool --db "$database" create
  temporal-sql-tool --db "$database" setup-schema -v 0.0
  temporal-sql-tool --db "$database" update-schema -d "$schema/$folder/versioned"
done
