// Drives a Datastore server by Google's library for Node.js, over gRPC or over REST.
//
//   DATASTORE_EMULATOR_HOST=127.0.0.1:8086 node datastore.mjs PROJECT grpc|rest
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not.

import assert from 'node:assert/strict';
import {Datastore, PropertyFilter, and, or} from '@google-cloud/datastore';
import {PassThroughClient} from 'google-auth-library';

const [projectId, transport] = process.argv.slice(2);
const overRest = {fallback: 'rest', protocol: 'http', authClient: new PassThroughClient()};

function connect(options) {
  return new Datastore({projectId, ...(transport === 'rest' ? overRest : {}), ...options});
}

const datastore = connect();
const ITEMS = 350; // more than one batch
const root = () => datastore.key(['Root', 'r']);

function plain(entity) {
  const copy = {...entity};
  delete copy[datastore.KEY];
  return copy;
}

const numbers = async (query, options) => (await query.run(options))[0].map(each => each.n);
const upTo = (count, fits) => [...Array(count).keys()].filter(fits);

async function values() {
  const long = 'x'.repeat(2000);
  const data = {
    int: 5, double: datastore.double(2), text: 'é😀', bool: true, nothing: null, long,
    when: new Date('2024-02-29T01:02:03.456Z'), blob: Buffer.from([0, 255]), none: Buffer.from([]),
    where: datastore.geoPoint({latitude: 52.5, longitude: -9.25}), list: [1, 'a', null, {x: [1]}],
    inner: {a: {b: long}}, inners: [{long}, {long: 'short'}], other: datastore.key(['A', 'b']),
  };
  const key = datastore.key(['Parent', 1, 'Everything']);
  await datastore.save({key, data, excludeFromIndexes: ['long', 'inner.a.b', 'inners[].long']});
  assert.ok(key.id);
  const [read] = await datastore.get(key);
  assert.deepEqual(read[datastore.KEY].path.map(String), key.path.map(String));
  assert.deepEqual(plain(read), {
    ...data, double: 2, where: {latitude: 52.5, longitude: -9.25}, other: read.other,
  });
  assert.deepEqual(read.other.path, ['A', 'b']);
  const large = datastore.key(['Large', datastore.int('9007199254740993')]);
  await datastore.save({key: large, data: {n: datastore.int('9223372036854775807')}});
  const [wrapped] = await datastore.get(large, {wrapNumbers: true});
  assert.equal(wrapped.n.value, '9223372036854775807');
  await assert.rejects(datastore.save({key, data: {long}}), /longer than 1500 bytes/);
  await datastore.save({key, data: {long}, excludeLargeProperties: true});
  const [urlsafe] = await datastore.keyToLegacyUrlSafe(key);
  const again = datastore.keyFromLegacyUrlsafe(urlsafe);
  assert.deepEqual(again.path.map(String), key.path.map(String));
}

async function mutations() {
  const keys = ['a', 'b', 'c'].map(name => datastore.key(['T', name]));
  await datastore.save([
    {key: keys[0], method: 'insert', data: {n: 1}}, {key: keys[1], data: {n: 2, other: true}},
  ]);
  await assert.rejects(datastore.insert({key: keys[0], data: {n: 3}}), /already exists/);
  await assert.rejects(datastore.update({key: keys[2], data: {n: 3}}), /no entity to update/);
  await datastore.update({key: keys[0], data: {n: 4}});
  await datastore.merge({key: keys[1], data: {n: 5}});
  const [read] = await datastore.get(keys);
  assert.deepEqual(read.map(plain).sort((x, y) => x.n - y.n), [{n: 4}, {n: 5, other: true}]);
  await datastore.delete(keys);
  assert.deepEqual((await datastore.get(keys))[0], []);
  assert.equal((await datastore.get(keys[0]))[0], undefined);
}

async function queries() {
  const items = [...Array(ITEMS).keys()].map(n => ({
    key: datastore.key(['Root', 'r', 'Item', n + 1]),
    data: {n, m: n % 7, tags: ['all', `t${n % 2}`], when: new Date(n * 1000)},
  }));
  await datastore.save(items);
  const query = () => datastore.createQuery('Item');
  const either = or([
    new PropertyFilter('n', '=', 5),
    and([new PropertyFilter('m', '=', 3), new PropertyFilter('tags', '=', 't1')]),
  ]);
  for (const [of, found] of [
    [query(), upTo(ITEMS, () => true)],
    [query().filter(new PropertyFilter('n', '>', 347)).order('n', {descending: true}), [349, 348]],
    [query().filter(new PropertyFilter('m', '=', 3)).filter(new PropertyFilter('tags', '=', 't0')),
      upTo(ITEMS, n => n % 7 === 3 && n % 2 === 0)],
    [query().hasAncestor(root()).filter(new PropertyFilter('n', '=', 7)), [7]],
    [datastore.createQuery().hasAncestor(root()).limit(2), [0, 1]],
    [query().filter(new PropertyFilter('n', 'IN', [9, 4])), [4, 9]],
    [query().filter(new PropertyFilter('n', 'NOT_IN', [0, 1])).limit(2), [2, 3]],
    [query().filter(new PropertyFilter('n', '!=', 0)).limit(1), [1]],
    [query().filter(either), upTo(ITEMS, n => n === 5 || (n % 7 === 3 && n % 2 === 1))],
    [query().order('n').offset(310).limit(3), [310, 311, 312]],
    [query().filter(new PropertyFilter('when', '>', new Date(348000))), [349]],
    [query().filter(new PropertyFilter('__key__', '>', items[347].key)), [348, 349]],
  ]) {
    assert.deepEqual(await numbers(of), found);
  }
  assert.deepEqual(await numbers(query().limit(2), {consistency: 'eventual'}), [0, 1]);
  const [keys] = await query().select('__key__').limit(2).run();
  assert.deepEqual(keys.map(each => each[datastore.KEY].id), ['1', '2']);
  const [distinct] = await query().select('m').groupBy('m').order('m').run();
  assert.deepEqual(distinct.map(each => each.m), [0, 1, 2, 3, 4, 5, 6]);
  const streamed = [];
  for await (const each of query().runStream()) streamed.push(each.n);
  assert.equal(streamed.length, ITEMS);
  await assert.rejects(
    query().filter(new PropertyFilter('m', '=', 3)).order('n', {descending: true}).run(),
    /recommended index is:.*- name: n.*direction: desc/s);
}

async function cursors() {
  const found = [];
  let query = datastore.createQuery('Item').order('n').limit(100);
  for (;;) {
    const [page, info] = await query.run();
    found.push(...page.map(each => each.n));
    if (info.moreResults === datastore.NO_MORE_RESULTS) break;
    query = query.start(info.endCursor);
  }
  assert.deepEqual(found, upTo(ITEMS, () => true));
}

async function aggregations() {
  const query = datastore.createQuery('Item').filter(new PropertyFilter('n', '<', 10));
  const [[row]] = await datastore.runAggregationQuery(
    datastore.createAggregationQuery(query).count('count').sum('n', 'sum').average('n', 'mean'));
  assert.deepEqual(row, {count: 10, sum: 45, mean: 4.5});
}

async function increment(key, between = async () => {}) {
  for (let turn = 1; ; turn++) {
    const transaction = datastore.transaction();
    await transaction.run();
    try {
      const [read] = await transaction.get(key);
      transaction.save({key, data: {n: (read?.n ?? 0) + 1}});
      await between(turn);
      await transaction.commit();
      return turn;
    } catch (error) {
      if (!/contention/.test(error.message) || turn === 50) throw error;
    }
  }
}

async function transactions() {
  const key = datastore.key(['Counter', 'retried']), other = connect();
  const turns = await increment(key, async turn => {
    if (turn < 3) await other.save({key, data: {n: turn * 10}});
  });
  assert.deepEqual([turns, (await datastore.get(key))[0].n], [3, 21]);
  const shared = datastore.key(['Counter', 'shared']);
  await Promise.all([...Array(4)].map(async () => {
    for (let n = 0; n < 8; n++) await increment(shared);
  }));
  assert.equal((await datastore.get(shared))[0].n, 32);
  const reading = datastore.transaction({readOnly: true});
  await reading.run();
  const [[found]] = await reading.createQuery('Counter').filter(
    new PropertyFilter('n', '=', 32)).run();
  assert.equal(found.n, 32);
  await reading.commit();
  const gone = datastore.transaction();
  await gone.run();
  gone.save({key, data: {n: 500}});
  await gone.rollback();
  const pending = datastore.transaction(), fresh = datastore.key('Counter');
  await pending.run();
  pending.save({key: fresh, data: {n: 1}});
  pending.delete(key);
  await pending.commit();
  assert.ok(fresh.id);
  assert.equal((await datastore.get(key))[0], undefined);
}

async function others() {
  const key = datastore.key(['Past', 'x']);
  await datastore.save({key, data: {n: 1}});
  await new Promise(done => setTimeout(done, 1001 - Date.now() % 1000));
  const before = Date.now() - Date.now() % 1000; // the library asks for whole seconds
  await datastore.save({key, data: {n: 2}});
  assert.equal((await datastore.get(key, {readTime: before}))[0].n, 1);
  const [allocated] = await datastore.allocateIds(datastore.key('K'), 5);
  assert.equal(new Set(allocated.map(each => each.id)).size, 5);
  for (const [at, each] of [connect({databaseId: 'second'}), connect({namespace: 'n'})].entries()) {
    const apart = each.key(['Apart', 'x']);
    await each.save({key: apart, data: {n: at}});
    assert.equal((await each.get(apart))[0].n, at);
    assert.deepEqual(await numbers(each.createQuery('Apart')), [at]);
  }
  assert.deepEqual(await numbers(datastore.createQuery('Apart')), []);
  const explained = await datastore.createQuery('Item').filter(
    new PropertyFilter('n', '>', 345)).run({explainOptions: {analyze: true}});
  assert.equal(explained[1].explainMetrics.executionStats.resultsReturned, 4);
}

for (const check of [
  values, mutations, queries, cursors, aggregations, transactions, others,
]) {
  try {
    await check();
  } catch (error) {
    console.error(`${check.name}: ${error.stack}`);
    process.exit(1);
  }
  console.log(`ok ${check.name}`);
}
