-- How many packages are there, and how many names that no package has?
SELECT COUNTIF(NOT MAP_EMPTY(meta)) AS packages, COUNTIF(MAP_EMPTY(meta)) AS virtual
FROM `debian-packages`;
