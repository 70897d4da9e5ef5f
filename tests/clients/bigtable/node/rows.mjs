// What @google-cloud/bigtable does with rows, few and many.

import assert from 'node:assert/strict';

const MEGABYTE = 1 << 20;
const column = (row, family, name) => row.data[family]?.[name]?.map(cell => cell.value);

export async function writes({table, instance}) {
  const row = table.row('w');
  await row.save({f: {q: {value: '1', timestamp: 1000}, b: Buffer.from([0, 255])}});
  await row.save({f: {q: {value: '2', timestamp: 2000}}, g: {n: 258}});
  await row.get();
  assert.deepEqual(column(row, 'f', 'q'), ['2', '1']);
  const [{data: {f, g}}] = await table.row('w').get({decode: false});
  assert.deepEqual(f.b[0].value, Buffer.from([0, 255]));
  assert.equal(g.n[0].value, 258); // numbers are eight bytes on the way
  await row.deleteCells(['f:q', 'g']);
  const [left] = await table.row('w').get();
  assert.deepEqual(Object.keys(left.data), ['f']);
  assert.deepEqual(Object.keys(left.data.f), ['b']);
  await row.delete();
  assert.deepEqual(await row.exists(), [false]);
  await assert.rejects(row.save({none: {q: 'v'}}), /family not found/);
  await assert.rejects(instance.table('none').row('w').get(), {code: 5});
}

export async function atomics({table}) {
  const row = table.row('order');
  const state = value => ({method: 'insert', data: {f: {state: {value, timestamp: 1000}}}});
  for (const matched of [false, true]) {
    const [was] = await row.filter([{value: 'new'}], {
      onMatch: [state('paid')], onNoMatch: [state('new')],
    });
    assert.equal(was, matched);
  }
  assert.deepEqual((await row.increment('g:count', 5))[0], 5);
  assert.deepEqual((await row.increment('g:count', -2))[0], 3);
  await row.createRules([{column: 'g:log', append: 'x'}, {column: 'g:log', append: 'y'}]);
  await row.get();
  assert.deepEqual(column(row, 'f', 'state'), ['paid']);
  assert.equal(column(row, 'g', 'log')[0], 'xy');
}

export async function filters({table}) {
  await table.insert({key: 'fruit', data: {
    f: {a: {value: 'apple', timestamp: 1000}, b: {value: 'berry', timestamp: 2000}},
    g: {c: {value: 'cherry', timestamp: 3000}},
  }});
  const cases = [
    [{family: 'g'}, ['g:c']],
    [{column: /[ab]/}, ['f:a', 'f:b']],
    [{column: {cellLimit: 1}}, ['f:a', 'f:b', 'g:c']],
    [{value: /.*rry/}, ['f:b', 'g:c']],
    [{value: {start: 'b', end: {value: 'c', inclusive: false}}}, ['f:b']],
    [{column: {family: 'f', start: 'b'}}, ['f:b']],
    [{row: {cellOffset: 2}}, ['g:c']],
    [{row: {cellLimit: 1}}, ['f:a']],
    [{interleave: [[{column: 'a'}], [{column: 'c'}]]}, ['f:a', 'g:c']],
    [{condition: {test: [{value: 'apple'}], pass: [{column: 'c'}], fail: [{all: true}]}}, ['g:c']],
    [[{family: 'f'}, {column: 'b'}, {value: {strip: true}}], ['f:b']],
  ];
  for (const [filter, want] of cases) {
    const [[row]] = await table.getRows({keys: ['fruit'], filter});
    const got = Object.entries(row.data).flatMap(
      ([family, columns]) => Object.keys(columns).map(name => `${family}:${name}`));
    assert.deepEqual(got, want, JSON.stringify(filter));
  }
  assert.deepEqual((await table.getRows({keys: ['fruit'], filter: {all: false}}))[0], []);
  const filter = [{column: 'a'}, {label: 'x'}];
  const [[labelled]] = await table.getRows({keys: ['fruit'], filter});
  assert.deepEqual(labelled.data.f.a[0].labels, ['x']);
  await assert.rejects(table.getRows({keys: ['fruit'], filter: {family: 'none'}}), {code: 5});
}

export async function ranges({table}) {
  await table.insert([1, 2, 3, 4, 5].map(n => ({key: `r${n}`, data: {f: {q: 'v'}}})));
  const after = value => ({value, inclusive: false});
  const cases = [
    [{prefix: 'r'}, '12345'],
    [{start: 'r2', end: 'r4'}, '234'],
    [{ranges: [{start: after('r2'), end: after('r4')}]}, '3'],
    [{keys: ['r4', 'r1', 'none']}, '14'],
    [{prefixes: ['r4', 'r1']}, '14'],
    [{prefix: 'r', limit: 2}, '12'],
    [{prefix: 'r', filter: {row: /r[24]/}}, '24'],
  ];
  for (const [options, want] of cases) {
    const [rows] = await table.getRows(options);
    assert.equal(rows.map(row => row.id.slice(1)).join(''), want, JSON.stringify(options));
  }
}

// Rows of so many cells in each so many bytes.
async function fill(table, rows, cells, size) {
  const batch = Math.max(1, Math.floor(2 * MEGABYTE / (cells * (size + 40))));
  const columns = Array.from({length: cells}, (_, n) => `q${String(n).padStart(4, '0')}`);
  const value = Buffer.alloc(size, 'v');
  for (let from = 0; from < rows; from += batch) {
    const entries = [];
    for (let row = from; row < Math.min(rows, from + batch); row++) {
      const f = Object.fromEntries(columns.map(name => [name, {value, timestamp: 1000}]));
      entries.push({key: `r${String(row).padStart(6, '0')}`, data: {f}});
    }
    await table.insert(entries);
  }
}

// What a scan sees: rows, cells, bytes of values.
async function count(table) {
  const seen = [0, 0, 0];
  for await (const row of table.createReadStream({decode: false})) {
    seen[0]++;
    for (const [cell] of Object.values(row.data.f)) {
      seen[1]++;
      seen[2] += cell.value.length;
    }
  }
  return seen;
}

async function fillAndCount(instance, rows, cells, size) {
  const table = instance.table('scanned');
  await table.create({families: ['f']});
  await fill(table, rows, cells, size);
  assert.deepEqual(await count(table), [rows, rows * cells, rows * cells * size]);
  await table.delete();
}

export async function scans({instance}) {
  await fillAndCount(instance, 1000, 10, 100);
  await fillAndCount(instance, 1000, 10, 1000);
  await fillAndCount(instance, 200, 50, 1000);
  await fillAndCount(instance, 66, 100, 1000);
}

export async function bulk({instance, table}) {
  await fillAndCount(instance, 5000, 4, 50);
  const entries = ['good', 'bad', 'good too'].map(key => (
    {method: 'insert', key, data: {[key === 'bad' ? 'none' : 'f']: {q: 'v'}}}));
  await assert.rejects(table.mutate(entries), error => {
    assert.equal(error.name, 'PartialFailureError');
    assert.deepEqual(error.errors.map(each => [each.code, each.entry.key]), [[5, 'bad']]);
    return true;
  });
  assert.deepEqual(await table.row('good too').exists(), [true]);
}

export async function largeCells({table}) {
  for (const megabytes of [3, 5, 60]) {
    const value = Buffer.alloc(megabytes * MEGABYTE, '0123456789abcdef');
    const row = table.row(`large-${megabytes}`);
    await row.save({f: {q: {value, timestamp: 1000}}, g: {after: 'small'}});
    await row.get({decode: false});
    assert.ok(column(row, 'f', 'q')[0].equals(value), row.id);
    assert.equal(column(row, 'g', 'after').length, 1);
    await row.delete();
  }
}
