"""Random queries for materialized views of the table that tests/crash/writer.py writes to: both
forms, all aggregates, unnested and with history, of families of which a row has little (a view
leaves a row out of which it selects more than 1 MiB)."""

KEYS = [
    "SUBSTR(_key, 1, 3) AS g", "SUBSTR(f['token'], 1, 6) AS g", "MOD(TO_INT64(c['sum']), 7) AS g",
    "CAST(SUBSTR(g['token'], 8, 2) AS STRING) AS g", "_key", "'*' AS _key",
    "TO_INT64(c['sum']) AS g",
]  # fmt: skip
AGGREGATES = [
    "COUNT(*)", "COUNT(c['sum'])", "SUM(TO_INT64(c['sum']))", "AVG(TO_INT64(c['sum']))",
    "SUM(TO_INT64(c['sum']) / 7)", "MIN(f['token'])", "MAX(g['token'])", "MIN(_key)",
    "MAX(TO_INT64(c['sum']))", "BIT_AND(TO_INT64(c['sum']))", "BIT_OR(TO_INT64(c['sum']))",
    "BIT_XOR(TO_INT64(c['sum']))", "HLL_COUNT.INIT(f['token'])",
]  # fmt: skip
CONDITIONS = [
    "", "", " WHERE c['sum'] IS NOT NULL", " WHERE _key > 'w03'", " WHERE TO_INT64(c['sum']) > 40",
    " WHERE f['token'] IS NOT NULL",
]  # fmt: skip
INDEXES = [
    "SELECT f['token'] AS t, _key AS k FROM {table}{condition} ORDER BY t, k",
    "SELECT TO_INT64(c['sum']) AS n, _key AS k, f['token'] AS t FROM {table}{condition} "
    "ORDER BY n, k",
    "SELECT _key, f['token'] AS t, c['sum'] AS n FROM {table}{condition} ORDER BY _key",
    "SELECT e.key AS q, _key AS k, e.value AS v FROM {table} CROSS JOIN UNNEST(MAP_ENTRIES(s)) "
    "AS e ORDER BY q, k",
]
PIECES = [
    "SELECT _key, _timestamp, COUNT(x) AS n, MAX(x) AS m FROM "
    "UNPACK((SELECT _key, g['token'] AS x FROM {table}(with_history => TRUE))) "
    "GROUP BY _key, _timestamp",
    "SELECT SUBSTR(e.key, 1, 9) AS q, COUNT(*) AS n FROM {table} "
    "CROSS JOIN UNNEST(MAP_ENTRIES(s)) AS e GROUP BY q",
]


def random_view(chance, table):
    kind, condition = chance.random(), chance.choice(CONDITIONS)
    if kind < 0.3:
        return chance.choice(INDEXES).format(table=table, condition=condition)
    if kind < 0.4:
        return chance.choice(PIECES).format(table=table)
    key = chance.choice(KEYS)
    one, other = chance.sample(AGGREGATES, 2)
    name = key.rsplit(" ", 1)[-1]
    return f"SELECT {key}, {one} AS x, {other} AS y FROM {table}{condition} GROUP BY {name}"
