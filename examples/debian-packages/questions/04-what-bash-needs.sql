-- What does bash need, in which version?
SELECT CAST(need.key AS STRING) AS package, CAST(need.value AS STRING) AS version
FROM `debian-packages`, UNNEST(MAP_ENTRIES(dep)) AS need
WHERE _key = 'bash'
ORDER BY package;
