import { StoreError } from '../../kernel/store/errors.js';
import {
  functions,
  groupRole,
  mine,
  myTeams,
  ownersColumns,
  redactFunction,
  searchFunction,
  seenParents,
} from './team-functions.js';
import { type QueryRows, type ServerConnection } from './server-connection.js';

/** The lock under which tables are made and changed. */
const schemaLock = 4_153_728_901;
const minServer = 130_000;

/** Roles belong to the whole server, so another database may have made it. */
const group = `
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${groupRole}')
    THEN CREATE ROLE ${groupRole} NOLOGIN; END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;`;

/** Sessions and events are those of SQLite. A session is kept whole in the
 * partition of the month that it began in; sessions of other times and ids
 * are in `events_other`. Columns from `tool` on are read out of `data_json`
 * as it is written; `words` is what a search finds the event by. */
const logTables = `
CREATE TABLE agent.sessions(
  id text COLLATE "C" PRIMARY KEY,
  owner text NOT NULL DEFAULT session_user,
  team text,
  machine text,
  parent_id text COLLATE "C",
  cwd text NOT NULL,
  title text,
  provider text,
  model text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  dir_id text,
  api text,
  base_url text,
  moves text,
  kind text,
  parent_call_id text,
  prompt text,
  last_seq bigint NOT NULL DEFAULT 0,
  head bytea);
CREATE INDEX sessions_owner ON agent.sessions(owner, updated_at);
CREATE INDEX sessions_team ON agent.sessions(team, updated_at)
  WHERE team IS NOT NULL;
CREATE INDEX sessions_cwd ON agent.sessions USING hash (cwd);
CREATE INDEX sessions_parent ON agent.sessions(parent_id)
  WHERE parent_id IS NOT NULL;

CREATE TABLE agent.events(
  session_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  kind text NOT NULL,
  content text,
  content_json boolean NOT NULL DEFAULT false,
  data_json text,
  created_at bigint NOT NULL,
  crc32 bigint,
  hash bytea,
  redacted text,
  tool text,
  call_id text,
  ok boolean,
  duration_ms bigint,
  code text,
  model text,
  tokens_in bigint,
  tokens_out bigint,
  cost_usd numeric,
  words tsvector,
  PRIMARY KEY (session_id, seq)) PARTITION BY RANGE (session_id);
CREATE INDEX events_words ON agent.events USING gin (words);
CREATE INDEX events_newest ON agent.events(created_at) WHERE words IS NOT NULL;
CREATE INDEX events_calls ON agent.events(tool, created_at)
  WHERE kind = 'tool_call';
CREATE INDEX events_spent ON agent.events(session_id,
  created_at) INCLUDE (model, cost_usd)
  WHERE kind IN ('usage', 'agent_usage');
CREATE INDEX events_redacted ON agent.events(session_id)
  WHERE redacted IS NOT NULL;
CREATE TABLE agent.events_other PARTITION OF agent.events DEFAULT;

CREATE TABLE agent.blobs(sha256 text COLLATE "C" PRIMARY KEY,
  bytes bytea NOT NULL);
CREATE TABLE agent.blob_refs(
  session_id text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_id, sha256));
CREATE INDEX blob_refs_sha256 ON agent.blob_refs(sha256);

CREATE TABLE agent.leases(
  session_id text COLLATE "C" PRIMARY KEY,
  owner text NOT NULL DEFAULT session_user,
  token text NOT NULL,
  pid bigint NOT NULL,
  host text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  beat timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE agent.queue(
  session_id text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  text text NOT NULL,
  when_ text NOT NULL,
  PRIMARY KEY (session_id, position));`;

/** Tasks and notes that machines share. Times are Unix ms. A task without a
 * machine may run on any. */
const sharedTables = `
CREATE TABLE agent.tasks(
  id text PRIMARY KEY,
  owner text NOT NULL DEFAULT session_user,
  team text,
  machine text,
  task_type text NOT NULL,
  description text NOT NULL,
  schedule_type text NOT NULL,
  schedule_data text NOT NULL,
  execution_data text,
  enabled boolean NOT NULL DEFAULT true,
  created_at bigint NOT NULL,
  last_run bigint,
  next_run bigint NOT NULL,
  tz text NOT NULL,
  cwd text NOT NULL,
  missed text NOT NULL,
  max_cost_usd double precision,
  grants text NOT NULL DEFAULT '[]',
  expires_at bigint,
  failures bigint NOT NULL DEFAULT 0,
  made_in_session text);
CREATE INDEX tasks_next_run ON agent.tasks(next_run) WHERE enabled;

CREATE TABLE agent.task_runs(
  id text PRIMARY KEY,
  task_id text NOT NULL,
  owner text NOT NULL DEFAULT session_user,
  team text,
  worker text,
  beat timestamptz NOT NULL DEFAULT clock_timestamp(),
  scheduled_for bigint NOT NULL,
  fired_at bigint NOT NULL,
  finished_at bigint,
  status text NOT NULL,
  session_id text,
  cost_usd double precision,
  summary text,
  seen boolean NOT NULL DEFAULT false);
CREATE INDEX task_runs_task ON agent.task_runs(task_id);
CREATE INDEX task_runs_running ON agent.task_runs(beat)
  WHERE status = 'running';
CREATE INDEX task_runs_spent ON agent.task_runs(fired_at)
  WHERE cost_usd > 0;

CREATE TABLE agent.notes(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner text NOT NULL DEFAULT session_user,
  team text,
  scope text NOT NULL,
  directory_id text,
  content text NOT NULL,
  tags text NOT NULL,
  trust text NOT NULL,
  approved boolean NOT NULL,
  pinned boolean NOT NULL,
  archived boolean NOT NULL,
  session text,
  seq bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL);`;

/** The policies for reading and writing. Functions that bypass them test `session_user`, which `SET ROLE` does not
 * change. */
const rights = `
CREATE FUNCTION agent.my_teams() RETURNS text[]
  LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(rolname::text), '{}')
    FROM pg_catalog.pg_roles
  WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
    AND rolname <> session_user $$;

ALTER TABLE agent.sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON agent.sessions FOR SELECT USING (owner = ${mine}
  OR team = ${myTeams});
CREATE POLICY made ON agent.sessions FOR INSERT
  WITH CHECK (owner = ${mine} AND (team IS NULL OR team = ${myTeams}));
CREATE POLICY changed ON agent.sessions FOR UPDATE
  USING (owner = ${mine})
  WITH CHECK (owner = ${mine} AND (team IS NULL OR team = ${myTeams}));

ALTER TABLE agent.events ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON agent.events FOR SELECT
  USING (EXISTS (SELECT FROM agent.sessions s WHERE s.id = session_id));
CREATE POLICY made ON agent.events FOR INSERT
  WITH CHECK (EXISTS (SELECT FROM agent.sessions s
    WHERE s.id = session_id AND s.owner = ${mine}));

ALTER TABLE agent.leases ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON agent.leases FOR SELECT USING (owner = ${mine});

ALTER TABLE agent.queue ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON agent.queue
  USING (EXISTS (SELECT FROM agent.sessions s WHERE s.id = session_id
    AND s.owner = ${mine}));

${['tasks', 'task_runs', 'notes']
  .map(
    (table) => `
ALTER TABLE agent.${table} ENABLE ROW LEVEL SECURITY;
CREATE POLICY shared ON agent.${table} USING (owner = ${mine} OR team = ${myTeams});`,
  )
  .join('')}

GRANT USAGE ON SCHEMA agent TO ${groupRole};
GRANT SELECT ON agent.schema_version, agent.sessions, agent.events,
  agent.leases TO ${groupRole};
GRANT INSERT ON agent.sessions, agent.events TO ${groupRole};
GRANT UPDATE (team, machine, cwd, title, provider, model, updated_at,
  dir_id, api, base_url, moves, prompt, last_seq,
  head) ON agent.sessions TO ${groupRole};
GRANT SELECT, INSERT, UPDATE, DELETE ON agent.queue, agent.tasks, agent.task_runs, agent.notes TO ${groupRole};`;

/** A month's partition is filled with what the default one holds of it, and
 * attached, which blocks no reader and no writer of other months. */
const partitions = `
CREATE FUNCTION agent.ulid_start(ms bigint) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
    ((ms / (32 ^ digit)::bigint) % 32)::int + 1, 1), ''
    ORDER BY digit DESC) FROM generate_series(0, 9) digit $$;

CREATE FUNCTION agent.make_partition(months_ahead int) RETURNS boolean
  LANGUAGE plpgsql SET search_path = agent, pg_temp AS $$
DECLARE
  month timestamp := date_trunc('month',
    now() AT TIME ZONE 'UTC') + make_interval(months => months_ahead);
  part text := 'events_' || to_char(month, 'YYYY_MM');
  low text := ulid_start((extract(epoch FROM month) * 1000)::bigint);
  high text := ulid_start((extract(epoch
    FROM month + interval '1 month') * 1000)::bigint);
BEGIN
  IF to_regclass('agent.' || part) IS NOT NULL
    THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(${schemaLock});
  IF to_regclass('agent.' || part) IS NOT NULL
    THEN RETURN false; END IF;
  EXECUTE format('CREATE TABLE agent.%I (LIKE agent.events INCLUDING DEFAULTS)', part);
  EXECUTE format('WITH moved AS (DELETE FROM agent.events_other
    WHERE session_id >= %L AND session_id < %L RETURNING *)
    INSERT INTO agent.%I SELECT * FROM moved', low, high, part);
  EXECUTE format('ALTER TABLE agent.events ATTACH PARTITION agent.%I FOR
    VALUES FROM (%L) TO (%L)', part, low, high);
  RETURN true;
END $$;

CREATE FUNCTION agent.make_partitions() RETURNS bigint
  LANGUAGE sql SECURITY DEFINER SET search_path = agent, pg_temp AS $$
  SELECT count(*) FILTER (WHERE agent.make_partition(ahead))
    FROM generate_series(0, 2) ahead $$;

SELECT agent.make_partition(ahead) FROM generate_series(-6, 2) ahead;`;

/** The columns and functions for runs on many machines. `sessions.written` says which session was written to last,
 * whatever the clocks of the machines say. A task of a team belongs to the role that made it: others neither make tasks
 * in its name nor change what its tasks do; tasks for any machine they may fire, pause and remove. `host` and `number`
 * say where a run is and in which order runs began. */
const fleet = `
CREATE SEQUENCE agent.writes;
ALTER TABLE agent.sessions ADD COLUMN written bigint;
CREATE INDEX sessions_written ON agent.sessions(owner, written);
CREATE FUNCTION agent.note_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
BEGIN
  NEW.written := nextval('agent.writes');
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION agent.note_write() FROM PUBLIC;
CREATE TRIGGER written BEFORE UPDATE ON agent.sessions FOR EACH ROW
  WHEN (NEW.last_seq IS DISTINCT
    FROM OLD.last_seq) EXECUTE FUNCTION agent.note_write();

ALTER TABLE agent.task_runs ADD COLUMN host text NOT NULL DEFAULT '';
ALTER TABLE agent.task_runs ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX task_runs_one ON agent.task_runs(task_id)
  WHERE status = 'running';
CREATE INDEX task_runs_number ON agent.task_runs(number);
CREATE INDEX task_runs_session ON agent.task_runs(session_id)
  WHERE session_id IS NOT NULL;
UPDATE agent.tasks SET machine = 'any' WHERE machine IS NULL;
ALTER TABLE agent.tasks ALTER COLUMN machine SET NOT NULL;

DROP POLICY shared ON agent.tasks;
CREATE POLICY seen ON agent.tasks FOR SELECT USING (owner = ${mine} OR team = ${myTeams});
CREATE POLICY made ON agent.tasks FOR INSERT
  WITH CHECK (owner = ${mine} AND (team IS NULL OR team = ${myTeams}));
CREATE POLICY changed ON agent.tasks FOR UPDATE
  USING (owner = ${mine} OR (machine = 'any' AND team = ${myTeams}));
CREATE POLICY gone ON agent.tasks FOR DELETE USING (owner = ${mine} OR (machine = 'any' AND team = ${myTeams}));
REVOKE UPDATE ON agent.tasks FROM ${groupRole};
GRANT UPDATE (enabled, last_run, next_run, missed, max_cost_usd,
  grants, expires_at, failures)
  ON agent.tasks TO ${groupRole};

DROP POLICY shared ON agent.task_runs;
CREATE POLICY seen ON agent.task_runs FOR SELECT USING (owner = ${mine} OR team = ${myTeams});
CREATE POLICY begun ON agent.task_runs FOR INSERT
  WITH CHECK (owner = ${mine} AND (team IS NULL OR team = ${myTeams}));
CREATE POLICY changed ON agent.task_runs FOR UPDATE USING (owner = ${mine} OR team = ${myTeams});
CREATE POLICY gone ON agent.task_runs FOR DELETE USING (owner = ${mine} OR team = ${myTeams});
REVOKE UPDATE ON agent.task_runs FROM ${groupRole};
GRANT UPDATE (beat, finished_at, status, session_id, cost_usd, summary, seen) ON agent.task_runs TO ${groupRole};`;

/** The indexes for the filters of a search. The first one replaces the one of calls alone. */
const filters = `
CREATE INDEX events_tool ON agent.events(tool, created_at)
  WHERE kind IN ('tool_call', 'tool_result');
DROP INDEX agent.events_calls;
CREATE INDEX events_shell ON agent.events(created_at) WHERE kind = 'shell';
CREATE INDEX events_import ON agent.events(session_id) WHERE kind = 'import';
${searchFunction}`;

/** An event whose JSON is broken would be left out of every search of the team.
 * Events that are there already stay as they are. */
const wholeJson = `
CREATE FUNCTION agent.is_json(text text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT SET search_path = '' AS $$
BEGIN
  PERFORM text::json;
  RETURN true;
EXCEPTION WHEN others THEN
  RETURN false;
END $$;
ALTER TABLE agent.events ADD CONSTRAINT events_json CHECK (
  agent.is_json(data_json)
  AND (NOT content_json OR agent.is_json(content))) NOT VALID;`;

/** Messages of other processes that are kept until an event has them. */
const keptMessages = `
CREATE TABLE agent.kept_messages(
  position bigint GENERATED ALWAYS AS IDENTITY,
  session_id text COLLATE "C" NOT NULL REFERENCES agent.sessions(id)
    ON DELETE CASCADE,
  id text NOT NULL,
  text text NOT NULL,
  source text NOT NULL,
  when_ text NOT NULL,
  PRIMARY KEY (session_id, id));
ALTER TABLE agent.kept_messages ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON agent.kept_messages
  USING (EXISTS (SELECT FROM agent.sessions s WHERE s.id = session_id
    AND s.owner = ${mine}));
GRANT SELECT, INSERT, UPDATE, DELETE ON agent.kept_messages TO ${groupRole};`;

/** Numbered from 1 and append-only: the meaning of a released entry never
 * changes, but the search is made by the last that has one. */
const migrations: readonly string[] = [
  [group, logTables, sharedTables, rights, partitions, functions].join('\n'),
  fleet,
  redactFunction,
  filters,
  wholeJson,
  [seenParents, redactFunction, ownersColumns].join('\n'),
  keptMessages,
];

/** The tables that this program works with. */
export const teamSchema = migrations.length;

/** Makes the tables, or brings them to `teamSchema`. Two at once wait for each
 * other. Needs a role that may make schemas in the database, and roles where
 * `agent_app` is missing. Resolves to the versions before and now. */
export async function initServer(server: ServerConnection): Promise<{ readonly from: number; readonly to: number }> {
  return await server.transact(async (rows) => {
    await checkServer(rows, server.name);
    await rows('SELECT pg_advisory_xact_lock($1)', [schemaLock]);
    await rows('CREATE SCHEMA IF NOT EXISTS agent');
    await rows(`CREATE TABLE IF NOT EXISTS agent.schema_version(
      version bigint PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())`);
    const from = (
      await rows<{ version: number | null }>('SELECT max(version) AS version FROM agent.schema_version')
    )[0];
    const version = from?.version ?? 0;
    refuseNewer(version, server.name);
    for (const [index, sql] of migrations.entries()) {
      if (index < version) continue;
      await rows(sql);
      await rows('INSERT INTO agent.schema_version(version) VALUES ($1)', [index + 1]);
    }
    return { from: version, to: teamSchema };
  });
}

/** Resolves to the version of the tables. Rejects with `uninitialised`,
 * `older` or `newer`. */
export async function checkSchema(server: Pick<ServerConnection, 'name' | 'rows'>): Promise<number> {
  const [row] = await server.rows<{ version: number | null }>(
    'SELECT max(version) AS version FROM agent.schema_version',
  );
  const version = row?.version ?? 0;
  refuseNewer(version, server.name);
  if (version === teamSchema) return version;
  throw new StoreError(
    'older',
    `${server.name} has tables of an older version of this program (schema ${version}, this one needs ${teamSchema})`,
    'Its owner runs: agent db init',
  );
}

function refuseNewer(version: number, name: string): void {
  if (version <= teamSchema) return;
  throw new StoreError(
    'newer',
    `${name} has tables of a newer version of this program (schema ${version}, this one knows ${teamSchema})`,
    'Update the program.',
  );
}

async function checkServer(rows: QueryRows, name: string): Promise<void> {
  const [facts] = await rows<{ version: number; encoding: string }>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding`,
  );
  if (facts && facts.version >= minServer && facts.encoding === 'UTF8') return;
  throw new StoreError(
    'rejected',
    `${name} cannot hold the record: PostgreSQL ${facts?.version ?? '?'}, encoding ${facts?.encoding ?? '?'}`,
    'It takes PostgreSQL 13 or later, and a database in UTF8.',
  );
}
