-- What is there for numpy in Python?
SELECT CAST(_key AS STRING) AS package, CAST(meta['version'] AS STRING) AS version
FROM `debian-packages`
WHERE STARTS_WITH(_key, 'python3-numpy') AND NOT MAP_EMPTY(meta);
