-- What costs less than 30, in whichever category?
SELECT
  CAST(_key AS STRING) AS product,
  CAST(CAST(SKU['Price'] AS STRING) AS INT64) AS price
FROM catalogue
WHERE CAST(CAST(SKU['Price'] AS STRING) AS INT64) < 30
ORDER BY price;
