-- Who looks after most packages?
SELECT
  REGEXP_EXTRACT(CAST(meta['maintainer'] AS STRING), r'^([^<]*[^ <]) *<') AS maintainer,
  COUNT(*) AS packages
FROM `debian-packages`
WHERE meta['maintainer'] IS NOT NULL
GROUP BY maintainer
ORDER BY packages DESC, maintainer
LIMIT 5;
