-- Which packages have been written since a moment (--param since=TIMESTAMP:...)?
SELECT CAST(_key AS STRING) AS package, CAST(meta['version'][0].value AS STRING) AS version
FROM `debian-packages`(with_history => TRUE, after => @since)
WHERE meta['version'] IS NOT NULL
ORDER BY package
LIMIT 5;
