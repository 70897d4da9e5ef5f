-- On which packages do most others depend?
SELECT CAST(_key AS STRING) AS package, ARRAY_LENGTH(MAP_KEYS(rdep)) AS dependents
FROM `debian-packages`
ORDER BY dependents DESC
LIMIT 5;
