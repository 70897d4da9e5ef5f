-- Which sections are the largest?
SELECT
  CAST(meta['section'] AS STRING) AS section,
  COUNT(*) AS packages,
  DIV(SUM(CAST(CAST(meta['installed-size'] AS STRING) AS INT64)), 1024 * 1024) AS gigabytes
FROM `debian-packages`
WHERE meta['section'] IS NOT NULL
GROUP BY section
ORDER BY packages DESC
LIMIT 5;
