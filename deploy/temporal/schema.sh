#!/bin/sh
# Create or update the server's two databases. Safe to repeat: what is there already is left alone.
# Reads SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, as temporal-sql-tool does.
set -eu

for database in temporal visibility; do
  if [ "$database" = temporal ]; then name=temporal; else name=temporal_visibility; fi
  temporal-sql-tool --plugin postgres12 --db "$name" create-database
  temporal-sql-tool --plugin postgres12 --db "$name" setup-schema -v 0.0
  temporal-sql-tool --plugin postgres12 --db "$name" update-schema \
    -d "/etc/temporal/schema/postgresql/v12/$database/versioned"
done
