-- A second way in: packages by their maintainer, in order.
CREATE MATERIALIZED VIEW IF NOT EXISTS packages-by-maintainer AS
SELECT meta['maintainer'] AS maintainer, _key AS package, meta['version'] AS version
FROM `debian-packages`
WHERE meta['maintainer'] IS NOT NULL
ORDER BY maintainer, package;

-- A leaderboard: packages by how many others need them.
CREATE MATERIALIZED VIEW IF NOT EXISTS most-needed AS
SELECT ARRAY_LENGTH(MAP_KEYS(rdep)) AS needed_by, _key AS package
FROM `debian-packages`
ORDER BY needed_by, package;

-- Running totals: sections, with what they come to.
CREATE MATERIALIZED VIEW IF NOT EXISTS sections AS
SELECT
  meta['section'] AS section,
  COUNT(*) AS packages,
  SUM(CAST(CAST(meta['installed-size'] AS STRING) AS INT64)) AS kilobytes,
  MAX(CAST(CAST(meta['installed-size'] AS STRING) AS INT64)) AS largest
FROM `debian-packages`
WHERE meta['section'] IS NOT NULL
GROUP BY section;
