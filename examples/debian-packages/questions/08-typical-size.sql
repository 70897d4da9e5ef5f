-- How large is a typical package of a section, and how large the largest?
SELECT
  section,
  APPROX_QUANTILES(kilobytes, 2)[OFFSET(1)] AS median_kb,
  MAX(kilobytes) AS largest_kb
FROM (
  SELECT
    CAST(meta['section'] AS STRING) AS section,
    CAST(CAST(meta['installed-size'] AS STRING) AS INT64) AS kilobytes
  FROM `debian-packages`
  WHERE meta['section'] IS NOT NULL)
GROUP BY section
HAVING COUNT(*) >= 1000
ORDER BY median_kb DESC, section
LIMIT 5;
