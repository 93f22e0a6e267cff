/** The role that everybody who uses the store belongs to. */
export const groupRole = 'agent_app';
/** The role that logged in. `SET ROLE` does not change it. */
export const mine = 'session_user::text';
/** Asked once a statement: a subquery without references is. */
export const myTeams = 'ANY ((SELECT agent.my_teams())::text[])';

/** The number of newest events that a search reads first. */
const newestEvents = 2000;
/** A search of some sessions names them up to this number. */
const fewSessions = 500;

/** Contents are handed out by the sessions that refer to them. Only who has
 * the bytes, or may read them already, can refer to them. */
const blobFunctions = `
CREATE FUNCTION agent.is_mine(id text) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
  SELECT EXISTS (SELECT FROM agent.sessions s WHERE s.id = is_mine.id
    AND s.owner = ${mine}) $$;

CREATE FUNCTION agent.may_read(id text) RETURNS boolean
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
  SELECT EXISTS (SELECT FROM agent.sessions s WHERE s.id = may_read.id
    AND (s.owner = ${mine} OR s.team = ${myTeams})) $$;

CREATE FUNCTION agent.blobs_missing(session text, wanted text[])
  RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
BEGIN
  IF NOT agent.is_mine(session)
    THEN RAISE insufficient_privilege; END IF;
  INSERT INTO agent.blob_refs SELECT session, hash
    FROM unnest(wanted) hash
    WHERE EXISTS (SELECT FROM agent.blob_refs r WHERE r.sha256 = hash
      AND agent.may_read(r.session_id))
    ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT hash FROM unnest(wanted) hash
    WHERE NOT EXISTS (SELECT FROM agent.blob_refs r
      WHERE r.session_id = session AND r.sha256 = hash);
END $$;

CREATE FUNCTION agent.blob_put(session text, hash text, contents bytea)
  RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
BEGIN
  IF NOT agent.is_mine(session)
    THEN RAISE insufficient_privilege; END IF;
  IF encode(sha256(contents), 'hex') <> hash THEN RAISE data_exception
    USING MESSAGE = 'these are not the contents'; END IF;
  INSERT INTO agent.blobs VALUES (hash, contents)
    ON CONFLICT DO NOTHING;
  INSERT INTO agent.blob_refs VALUES (session, hash)
    ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION agent.blob_get(hash text) RETURNS bytea
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
  SELECT b.bytes FROM agent.blobs b WHERE b.sha256 = hash
    AND EXISTS (SELECT FROM agent.blob_refs r WHERE r.sha256 = hash
      AND agent.may_read(r.session_id)) $$;

CREATE FUNCTION agent.blobs_of(session text) RETURNS SETOF text
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
  SELECT sha256 FROM agent.blob_refs WHERE session_id = session AND agent.may_read(session) ORDER BY 1 $$;`;

const leaseFunctions = `
CREATE FUNCTION agent.lease_take(session text, my_token text,
  my_pid bigint, my_host text, stale_ms bigint)
  RETURNS TABLE(token text, pid bigint, host text, since bigint)
  LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = agent, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM agent.sessions s WHERE s.id = session
    AND s.owner <> ${mine}) THEN
    RAISE unique_violation; END IF;
  INSERT INTO agent.leases AS l(session_id, token, pid, host)
    VALUES (session, my_token, my_pid, my_host)
    ON CONFLICT (session_id) DO UPDATE
      SET owner = ${mine}, token = my_token, pid = my_pid,
      host = my_host,
      since = clock_timestamp(), beat = clock_timestamp()
    WHERE l.beat < clock_timestamp() - make_interval(secs => greatest(stale_ms, 1000) / 1000.0);
  RETURN QUERY SELECT CASE WHEN l.token = my_token
    THEN l.token END, l.pid, l.host,
    (extract(epoch FROM l.since) * 1000)::bigint FROM agent.leases l
      WHERE l.session_id = session;
END $$;

CREATE FUNCTION agent.lease_beat(session text, my_token text)
  RETURNS boolean
  LANGUAGE sql SECURITY DEFINER SET search_path = agent, pg_temp AS $$
  WITH beaten AS (UPDATE agent.leases SET beat = clock_timestamp()
    WHERE session_id = session AND token = my_token AND owner = ${mine}
      RETURNING 1)
  SELECT EXISTS (SELECT FROM beaten) $$;

CREATE FUNCTION agent.lease_release(session text, my_token text)
  RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path = agent, pg_temp AS $$
  DELETE FROM agent.leases WHERE session_id = session AND token = my_token AND owner = ${mine} $$;`;

/** Full text is searched past row-level security, which would read every row:
 * the match is not leakproof. Frequent words and filters are met among the
 * newest events, which are looked through first; an index would hand out all
 * that fits. The order by a sum keeps any other question off the way back
 * through all events. Where only some sessions are asked for, they are named,
 * so the key and the index of words are combined before any event is read.
 * UUIDs of version 7, ids of other programs, are in no month: they begin with
 * 018 or 019 until the year 2036. Without a query, every event with words is
 * looked at. A file that an event names is one that it may be about: who asks
 * looks closer. */
export const searchFunction = String.raw`
DROP FUNCTION IF EXISTS agent.search(text, text, bigint, text, text,
  bigint, bigint);

CREATE FUNCTION agent.one_of(wanted jsonb, condition text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF wanted IS NULL THEN RETURN ''; END IF;
  RETURN (SELECT ' AND (' || string_agg(format(condition, one), ' OR ')
    || ')' FROM jsonb_array_elements_text(wanted) one);
END $$;

CREATE FUNCTION agent.search(query text, asked jsonb, most bigint,
  skipped bigint)
  RETURNS TABLE(session_id text, seq bigint, kind text,
    created_at bigint, cwd text, title text, owner text,
    content text, content_json boolean, data_json text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = agent, pg_temp AS $$
DECLARE
  brought text := 'SELECT i.session_id FROM agent.events i
    WHERE i.kind = ''import''';
  sessions text := format('(s.owner = %L OR s.team = ANY (%L))',
      session_user, ARRAY(SELECT agent.my_teams()))
    || agent.one_of(asked->'since', 's.created_at >= %1$L::bigint')
    || agent.one_of(asked->'owner', 's.owner = %1$L')
    || agent.one_of(asked->'cwd', 's.cwd = %1$L')
    || agent.one_of(asked->'session', 'starts_with(lower(s.id), lower(%1$L))
      OR strpos(lower(s.title), lower(%1$L)) > 0')
    || agent.one_of(asked->'from', '%1$L = ''agent'' AND
      s.id NOT IN (' || brought || ') OR s.id IN (' || brought || ' AND
      strpos(i.data_json, ''"tool":'' || to_json(%1$L::text)) > 0)');
  times text := agent.one_of(asked->'after', 'n.created_at >= %1$L::bigint')
    || agent.one_of(asked->'before', 'n.created_at < %1$L::bigint');
  newest text := '(SELECT * FROM agent.events n WHERE n.words IS NOT NULL'
    || times || ' ORDER BY n.created_at DESC, n.session_id DESC, n.seq DESC
    LIMIT ${newestEvents}) e';
  condition text := ' JOIN agent.sessions s ON s.id = e.session_id WHERE '
    || CASE WHEN query IS NULL THEN 'e.words IS NOT NULL'
      ELSE format('e.words @@ %L::tsquery', query) END
    || ' AND ' || sessions || replace(times, 'n.', 'e.')
    || agent.one_of(asked->'since_id', 'e.session_id >= %1$L
      OR e.session_id BETWEEN ''018'' AND ''01A''')
    || agent.one_of(asked->'kinds', 'e.kind = %1$L')
    || agent.one_of(asked->'tools', 'e.kind IN (''tool_call'',
      ''tool_result'') AND (e.tool = %1$L OR right(%1$L, 1) = ''*''
      AND starts_with(e.tool, left(%1$L, -1)))')
    || agent.one_of(asked->'files', 'CASE e.kind
      WHEN ''tool_call'' THEN strpos(e.data_json,
        replace(replace(%1$L, ''\'', ''\\''), ''"'', ''\"'')) > 0
      WHEN ''tool_result'' THEN strpos(e.data_json, %1$L) > 0
        AND strpos(e.data_json, ''"changes"'') > 0 END');
  places text := 'agent.events e';
  ids text[];
  found bigint;
BEGIN
  IF asked ?| '{owner,cwd,session,from}' THEN
    EXECUTE 'SELECT coalesce(array_agg(f.id), ''{}'') FROM (
      SELECT s.id FROM agent.sessions s WHERE ' || sessions || '
      LIMIT ${fewSessions + 1}) f' INTO ids;
  END IF;
  IF cardinality(ids) = 0 THEN RETURN; END IF;
  IF cardinality(ids) <= ${fewSessions} THEN
    condition := condition || format(' AND e.session_id = ANY (%L)', ids);
  ELSIF most + skipped <= ${newestEvents} THEN
    EXECUTE 'SELECT count(*) FROM ' || newest || condition INTO found;
    IF found >= most + skipped THEN places := newest; END IF;
  END IF;
  RETURN QUERY EXECUTE '
    SELECT e.session_id, e.seq, e.kind, e.created_at, s.cwd, s.title,
      s.owner, e.content, e.content_json, e.data_json
    FROM ' || places || condition || '
    ORDER BY e.created_at + 0 DESC, e.session_id DESC, e.seq DESC
    LIMIT $1 OFFSET $2' USING most, skipped;
END $$;

REVOKE ALL ON FUNCTION agent.one_of(jsonb, text),
  agent.search(text, jsonb, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION agent.search(text, jsonb, bigint,
  bigint) TO ${groupRole};`;

/** The texts in a JSON value as a mark; names and ids stay. What is no JSON is left out. */
const blankFunctions = `
CREATE OR REPLACE FUNCTION agent.blank(value jsonb, name text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = agent, pg_temp AS $$
BEGIN
  RETURN CASE jsonb_typeof(value)
    WHEN 'string' THEN CASE WHEN name IN ('id', 'tool_call_id', 'response_id',
      'type', 'name', 'kind') THEN value ELSE '"[redacted]"'::jsonb END
    WHEN 'object' THEN (SELECT coalesce(jsonb_object_agg(f.key,
      agent.blank(f.value, f.key)), '{}') FROM jsonb_each(value) f)
    WHEN 'array' THEN (SELECT coalesce(jsonb_agg(agent.blank(f.value, name)
      ORDER BY f.ordinality), '[]')
      FROM jsonb_array_elements(value) WITH ORDINALITY f)
    ELSE value END;
END $$;
CREATE OR REPLACE FUNCTION agent.blank_text(value text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = agent, pg_temp AS $$
BEGIN
  RETURN agent.blank(value::jsonb, '')::text;
EXCEPTION WHEN others THEN
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION agent.blank(jsonb, text), agent.blank_text(text)
  FROM PUBLIC;`;

/** True if a parent was on the server when its fork came. Somebody could add a session of the parent's id later, to
 * reach what was forked from it. */
export const seenParents = `
ALTER TABLE agent.sessions ADD COLUMN parent_seen boolean NOT NULL
  DEFAULT false;
UPDATE agent.sessions s SET parent_seen = true WHERE EXISTS (
  SELECT FROM agent.sessions p WHERE p.id = s.parent_id);
CREATE FUNCTION agent.note_parent() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = agent, pg_temp AS $$
BEGIN
  NEW.parent_seen := EXISTS (SELECT FROM agent.sessions p
    WHERE p.id = NEW.parent_id);
  RETURN NEW;
END $$;
CREATE TRIGGER parent_seen BEFORE INSERT ON agent.sessions FOR EACH ROW
  EXECUTE FUNCTION agent.note_parent();
CREATE FUNCTION agent.keep_parent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.parent_seen := OLD.parent_seen
    AND NEW.parent_id IS NOT DISTINCT FROM OLD.parent_id;
  RETURN NEW;
END $$;
CREATE TRIGGER parent_kept BEFORE UPDATE ON agent.sessions FOR EACH ROW
  WHEN (NEW.parent_id IS DISTINCT FROM OLD.parent_id
    OR NEW.parent_seen IS DISTINCT FROM OLD.parent_seen)
  EXECUTE FUNCTION agent.keep_parent();`;

/** Only its owner says what a task may do, cost and for how long. */
export const ownersColumns = `
CREATE FUNCTION agent.own_columns() RETURNS trigger LANGUAGE plpgsql
    SET search_path = agent, pg_temp AS $$
BEGIN
  IF OLD.owner <> ${mine} THEN
    RAISE EXCEPTION 'only its owner changes grants, costs and the end of a task'
      USING ERRCODE = '42501';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER own_columns BEFORE UPDATE ON agent.tasks FOR EACH ROW
  WHEN ((NEW.grants, NEW.max_cost_usd, NEW.expires_at)
    IS DISTINCT FROM (OLD.grants, OLD.max_cost_usd, OLD.expires_at))
  EXECUTE FUNCTION agent.own_columns();`;

/** The first message that is no note of the program is the prompt of its
 * session. In sessions of others nothing is written but a mark. */
export const redactFunction = `
${blankFunctions}
CREATE OR REPLACE FUNCTION agent.redact(session text, event bigint, link bytea,
  old text, new_content text, is_json boolean,
  new_data text, new_crc bigint, new_words text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
DECLARE
  found text;
  own boolean;
  changed bigint := 0;
BEGIN
  IF NOT agent.is_mine(session) THEN RETURN 0; END IF;
  IF NOT EXISTS (SELECT FROM agent.events WHERE session_id = session
    AND seq = event AND hash = link) THEN
    RETURN 0; END IF;
  FOR found IN
    WITH RECURSIVE family AS (
      SELECT session COLLATE "C" AS id UNION SELECT s.id FROM agent.sessions s
        JOIN family f ON s.parent_id = f.id
        WHERE coalesce((to_jsonb(s)->>'parent_seen')::boolean, true))
    SELECT s.id FROM agent.sessions s
      JOIN agent.events e ON e.session_id = s.id AND e.seq = event
    WHERE e.hash = link AND (s.owner = ${mine} OR s.id IN (SELECT id
      FROM family))
  LOOP
    own := EXISTS (SELECT FROM agent.sessions s
      WHERE s.id = found AND s.owner = ${mine});
    UPDATE agent.events e
      SET content = CASE WHEN own THEN new_content
        WHEN e.content IS NULL THEN NULL ELSE '[redacted]' END,
      content_json = own AND is_json,
      data_json = CASE WHEN own THEN new_data
        ELSE agent.blank_text(e.data_json) END,
      crc32 = CASE WHEN own THEN new_crc END,
      words = CASE WHEN own THEN new_words::tsvector END,
      redacted = coalesce(e.redacted, old)
      WHERE e.session_id = found AND e.seq = event;
    UPDATE agent.sessions s
      SET prompt = CASE WHEN own
        THEN left(split_part(new_content, E'\\n', 1), 200)
        ELSE '[redacted]' END
      WHERE s.id = found
      AND event = (SELECT min(seq) FROM agent.events
        WHERE session_id = found AND kind = 'user'
          AND strpos(coalesce(data_json, ''), '"note":true') = 0);
    PERFORM agent.drop_unreferred(found);
    changed := changed + 1;
  END LOOP;
  RETURN changed;
END $$;`;

const changeFunctions = `
CREATE FUNCTION agent.drop_unreferred(session text) RETURNS void
  LANGUAGE sql SET search_path = agent, pg_temp AS $$
  WITH gone AS (DELETE FROM agent.blob_refs r
    WHERE r.session_id = session AND NOT EXISTS (
    SELECT FROM agent.events e WHERE e.session_id = session
      AND strpos(e.data_json, r.sha256) > 0) RETURNING r.sha256)
  DELETE FROM agent.blobs b USING gone WHERE b.sha256 = gone.sha256
    AND NOT EXISTS (
    SELECT FROM agent.blob_refs r WHERE r.sha256 = b.sha256
      AND r.session_id <> session) $$;

${redactFunction}

CREATE FUNCTION agent.remove(session text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = agent, pg_temp AS $$
DECLARE
  gone text;
BEGIN
  IF NOT agent.is_mine(session) THEN RETURN false; END IF;
  FOR gone IN SELECT id FROM agent.sessions
    WHERE owner = ${mine} AND (id = session OR (parent_id = session
      AND kind = 'agent'))
  LOOP
    DELETE FROM agent.events WHERE session_id = gone;
    PERFORM agent.drop_unreferred(gone);
    DELETE FROM agent.queue WHERE session_id = gone;
    DELETE FROM agent.leases WHERE session_id = gone;
    DELETE FROM agent.sessions WHERE id = gone;
  END LOOP;
  RETURN true;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA agent FROM PUBLIC;
GRANT EXECUTE ON FUNCTION agent.my_teams(), agent.make_partitions(),
  agent.blobs_missing(text, text[]),
  agent.blob_put(text, text, bytea), agent.blob_get(text),
    agent.blobs_of(text),
  agent.lease_take(text, text, bigint, text, bigint),
    agent.lease_beat(text, text), agent.lease_release(text, text),
  agent.redact(text, bigint, bytea, text, text, boolean, text, bigint, text), agent.remove(text) TO ${groupRole};`;

/** They see past row-level security and therefore test who logged in; nobody
 * else's objects can stand in the way of theirs. */
export const functions = [blobFunctions, leaseFunctions, changeFunctions].join('\n');
