#!/bin/sh
# Runs once, when the database is made: the group of everybody, a team, and the role of its workers.
set -e
psql -v ON_ERROR_STOP=1 -v password="$WORKER_PASSWORD" -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
CREATE ROLE agent_app NOLOGIN;
CREATE ROLE crew NOLOGIN;
CREATE ROLE worker LOGIN PASSWORD :'password' IN ROLE agent_app, crew;
SQL
