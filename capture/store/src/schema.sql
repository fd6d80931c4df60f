-- The tables of capture.db. Never changed once released; later versions add steps in `schema.rs`.

-- The event log: sessions, the files they are read from, events, long texts by their hash, turns.
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  provider INTEGER NOT NULL,
  provider_session_id TEXT NOT NULL,
  last_event_at INTEGER NOT NULL DEFAULT 0,
  capture INTEGER NOT NULL DEFAULT 1,
  view TEXT,
  snapshot TEXT,
  UNIQUE (provider, provider_session_id)
) STRICT;
CREATE INDEX sessions_by_last_event ON sessions (last_event_at, id);
CREATE INDEX sessions_by_provider_id ON sessions (provider_session_id);
CREATE TABLE files (
  key INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  cursor TEXT
) STRICT;
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  id BLOB NOT NULL,
  kind INTEGER NOT NULL,
  source INTEGER NOT NULL,
  marks INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  observed_at INTEGER NOT NULL,
  turn BLOB,
  parent BLOB,
  agent TEXT,
  text TEXT,
  text_hash BLOB,
  text_length INTEGER,
  data TEXT NOT NULL,
  file INTEGER,
  generation INTEGER,
  offset INTEGER,
  length INTEGER,
  delivery TEXT
) STRICT;
CREATE UNIQUE INDEX events_by_session ON events (session, sequence);

-- The notable events, by their time: see `crate::timeline`. With `kind IN (…)` instead of a bit mask, SQLite would build a
-- temporary table on each insert.
CREATE INDEX events_notable ON events (created_at) WHERE (59616310 >> kind & 1) <> 0 OR marks & 8 <> 0;
CREATE TABLE texts (
  key INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  codec INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE turns (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  turn TEXT NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

-- Approvals, findings and queued prompts have one shape: a state, a beginning, and the rest as JSON.
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_time ON approvals (began_at, id);
CREATE INDEX approvals_pending ON approvals (state, began_at) WHERE state = 1;
CREATE TABLE findings (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX findings_by_time ON findings (began_at, id);
CREATE TABLE prompts (
  id TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  state INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX prompts_by_time ON prompts (began_at, id);

-- The findings that messages were sent about.
CREATE TABLE notified (
  finding TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The chain of decisions. AUTOINCREMENT: a number is never given twice, so that rows missing at the end are noticed.
CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;

-- The records the log holds: see `crate::known`.
CREATE TABLE known_runs (
  run INTEGER PRIMARY KEY,
  rows INTEGER NOT NULL,
  blocks INTEGER NOT NULL,
  filter BLOB NOT NULL
) STRICT;
CREATE TABLE known_batches (
  key INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;
CREATE TABLE known_blocks (
  key INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;

-- What each call of a model used.
CREATE TABLE usage (
  session INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_hour_tokens INTEGER NOT NULL,
  thinking_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER,
  first INTEGER NOT NULL,
  PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;

-- How quotas were used up.
CREATE TABLE quotas (
  provider INTEGER NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  window_minutes INTEGER,
  used_permille INTEGER NOT NULL,
  resets_at INTEGER,
  PRIMARY KEY (provider, name, at)
) STRICT, WITHOUT ROWID;

-- What agents' own accounting says: see `crate::accounts`.
CREATE TABLE accounts (
  session INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  began_at INTEGER NOT NULL,
  model TEXT NOT NULL,
  at INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_hour_tokens INTEGER NOT NULL,
  thinking_tokens INTEGER NOT NULL,
  cost_nano_usd INTEGER,
  PRIMARY KEY (session, scope, began_at, model)
) STRICT, WITHOUT ROWID;

-- The position up to which the rows of sessions are complete.
CREATE TABLE settled (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  position INTEGER NOT NULL
) STRICT;

-- Names the log. A new log gets another name, so that its positions are not taken for those of the old one.
CREATE TABLE log_id (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  id BLOB NOT NULL
) STRICT;

-- Positions up to this one were given, also when the events are gone.
CREATE TABLE log_end (
  key INTEGER PRIMARY KEY CHECK (key = 0),
  position INTEGER NOT NULL
) STRICT;

-- The sessions that were removed and are not read again.
CREATE TABLE removed (
  hash BLOB PRIMARY KEY,
  forgotten INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is still to be erased of removed sessions.
CREATE TABLE erasing (
  session INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  forgotten INTEGER NOT NULL,
  about TEXT NOT NULL
) STRICT;

-- The sessions that were removed to save space, so that they can be forgotten later: see `crate::removal`.
CREATE TABLE pruned (
  session INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  name TEXT NOT NULL,
  about TEXT NOT NULL
) STRICT;

INSERT INTO settled VALUES (0, 0);
INSERT INTO log_id VALUES (0, randomblob(16));
INSERT INTO log_end VALUES (0, 0);
