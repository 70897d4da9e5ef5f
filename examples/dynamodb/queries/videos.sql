-- How many of those who see a video like it?
SELECT
  CAST(Video['Title'] AS STRING) AS title,
  TO_INT64(Stats['Likes']) AS likes,
  TO_INT64(Stats['Views']) AS views
FROM videos
ORDER BY views DESC;
