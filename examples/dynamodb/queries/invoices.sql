-- What has been paid of each invoice?
SELECT
  CAST(_key AS STRING) AS invoice,
  JSON_VALUE(CAST(Invoice['Details'] AS STRING), '$.Customer') AS customer,
  CAST(JSON_VALUE(CAST(Invoice['Details'] AS STRING), '$.Total') AS INT64) AS total,
  SUM(CAST(JSON_VALUE(CAST(one.value AS STRING), '$.Amount') AS INT64)) AS paid
FROM invoices, UNNEST(MAP_ENTRIES(Payment)) AS one
GROUP BY invoice, customer, total
ORDER BY invoice;
