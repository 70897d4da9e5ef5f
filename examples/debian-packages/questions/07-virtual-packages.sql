-- Which names that no package has are wanted most?
SELECT CAST(_key AS STRING) AS name, ARRAY_LENGTH(MAP_KEYS(rdep)) AS wanted_by
FROM `debian-packages`
WHERE MAP_EMPTY(meta)
ORDER BY wanted_by DESC, name
LIMIT 5;
