#!/bin/sh
# Create or update the server's two databases. Safe to repeat: what is there already is left alone.
# Reads SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, as temporal-sql-tool does.
set -eu

set_up() {  # name of the database, folder of its schema
  name=$1
  versions=/etc/temporal/schema/postgresql/v12/$2/versioned
  temporal-sql-tool --plugin postgres12 --db "$name" create-database
  temporal-sql-tool --plugin postgres12 --db "$name" setup-schema -v 0.0
  temporal-sql-tool --plugin postgres12 --db "$name" update-schema -d "$versions"
}

set_up temporal temporal
set_up temporal_visibility visibility
