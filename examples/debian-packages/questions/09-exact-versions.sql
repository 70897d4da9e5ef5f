-- Which packages want one version of libsqlite3-0, and no other?
SELECT CAST(user.key AS STRING) AS package, CAST(user.value AS STRING) AS version
FROM `debian-packages`, UNNEST(MAP_ENTRIES(rdep)) AS user
WHERE _key = 'libsqlite3-0' AND STARTS_WITH(user.value, '=')
ORDER BY package;
