// SQL through @google-cloud/bigtable: parameters of every type that it has, and a table.

import assert from 'node:assert/strict';
import {SqlTypes} from '@google-cloud/bigtable';
import {BigtableDate} from '@google-cloud/bigtable/build/src/execute-query/values.js';
import {PreciseDate} from '@google-cloud/precise-date';

async function query(instance, sql, parameterTypes, parameters) {
  const [preparedStatement] = await instance.prepareStatement({query: sql, parameterTypes});
  const [rows] = await instance.executeQuery({preparedStatement, parameters});
  return rows;
}

export async function parameters({instance}) {
  const cases = [
    [SqlTypes.Bytes(), Buffer.from([0, 255])],
    [SqlTypes.String(), 'é😀'],
    [SqlTypes.Int64(), -(2n ** 63n)],
    [SqlTypes.Float32(), 1.25],
    [SqlTypes.Float64(), -2.5e300],
    [SqlTypes.Bool(), true],
    [SqlTypes.Timestamp(), new PreciseDate('2024-02-29T01:02:03.456789Z')],
    [SqlTypes.Date(), new BigtableDate(2024, 2, 29)],
  ];
  for (const [type, value] of cases) {
    const [row, ...more] = await query(
      instance, 'SELECT @one AS one, @none IS NULL AS none, @many AS many',
      {one: type, none: type, many: SqlTypes.Array(type)},
      {one: value, none: null, many: [value, null, value]},
    );
    assert.equal(more.length, 0);
    assert.deepEqual(row.get('one'), value);
    assert.equal(row.get('none'), true);
    assert.deepEqual(row.get('many'), [value, null, value]);
  }
}

export async function ofTable({instance}) {
  const table = instance.table('sales');
  await table.create({families: ['f']});
  const value = 'v'.repeat(600);
  const keys = Array.from({length: 1000}, (_, n) => `r${String(n).padStart(6, '0')}`);
  await table.insert(keys.map(key => ({key, data: {f: {q: {value, timestamp: 1000}}}})));
  const rows = await query(
    instance, 'SELECT _key, f FROM sales WHERE _key >= @start', // of many messages
    {start: SqlTypes.Bytes()}, {start: Buffer.from('r000100')},
  );
  assert.deepEqual(rows.map(row => row.get('_key').toString()), keys.slice(100));
  assert.ok(rows.every(row => row.get('f').get(Buffer.from('q')).toString() === value));
  const [counted] = await query(
    instance, "SELECT COUNT(*) AS n FROM sales WHERE f['q'] IS NOT NULL");
  assert.equal(counted.get('n'), 1000n);
  await assert.rejects(query(instance, 'SELECT nothing FROM sales'), {code: 3});
  await table.delete();
}
