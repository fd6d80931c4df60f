-- Fills `usage` from the log: one row for each report of tokens. 17 is the code of `usage.reported`, 2^48 the most
-- tokens of a row. What an agent's accounting says is not a call.
INSERT OR IGNORE INTO usage
WITH reported AS MATERIALIZED (
  SELECT session, position, created_at, data FROM events WHERE kind = 17 AND json_valid(data)
)
SELECT session, position, created_at, ifnull(data ->> '$.model', ''),
  CAST(min(max(ifnull(data ->> '$.input_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(ifnull(data ->> '$.output_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(ifnull(data ->> '$.cache_read_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(ifnull(data ->> '$.cache_write_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(ifnull(data ->> '$.cache_write_hour_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(ifnull(data ->> '$.thinking_tokens', 0), 0), 281474976710656) AS INTEGER),
  CAST(min(max(data ->> '$.cost_nano_usd', 0), 281474976710656) AS INTEGER),
  row_number() OVER (PARTITION BY session, ifnull(data ->> '$.message_id', position) ORDER BY position) = 1
    AND ifnull(data ->> '$.input_tokens', 0) + ifnull(data ->> '$.output_tokens', 0)
      + ifnull(data ->> '$.cache_read_tokens', 0) + ifnull(data ->> '$.cache_write_tokens', 0) > 0
FROM reported
WHERE data ->> '$.account' IS NULL
  AND (json_array_length(data, '$.quotas') IS NULL OR data ->> '$.cost_nano_usd' IS NOT NULL
    OR ifnull(data ->> '$.input_tokens', 0) + ifnull(data ->> '$.output_tokens', 0)
      + ifnull(data ->> '$.cache_read_tokens', 0) + ifnull(data ->> '$.cache_write_tokens', 0)
      + ifnull(data ->> '$.cache_write_hour_tokens', 0) + ifnull(data ->> '$.thinking_tokens', 0) > 0);
