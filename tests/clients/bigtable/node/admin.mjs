// What the admin calls of @google-cloud/bigtable do.

import assert from 'node:assert/strict';

const HOUR = 3600_000;

// One is made, or changed, when its operation is done.
async function done(answer) {
  const [, operation] = await answer;
  await operation.promise();
}

export async function anInstance({client, instance, table, cluster}) {
  const clusters = {id: 'orders-c1', nodes: 1, location: 'us-central1-b', storage: 'ssd'};
  await done(instance.create({clusters, displayName: 'Orders', labels: {team: 'shop'}}));
  await table.create({families: ['f', 'g']});
  await instance.setMetadata({displayName: 'All orders'});
  const [shown] = await instance.getMetadata();
  assert.equal(shown.displayName, 'All orders');
  assert.deepEqual(shown.labels, {team: 'shop'});
  const [operation] = await cluster.setMetadata({nodes: 3});
  await operation.promise();
  const [one] = await cluster.getMetadata();
  assert.equal(one.serveNodes, 3);
  assert.match(one.location, /us-central1-b$/);
  const [autoscaled] = await cluster.setMetadata({
    minServeNodes: 4, maxServeNodes: 6, cpuUtilizationPercent: 60,
  });
  await autoscaled.promise();
  assert.equal((await cluster.getMetadata())[0].serveNodes, 3); // they move later
  assert.deepEqual((await client.getInstances())[0].map(each => each.id), ['orders']);
}

export async function appProfiles({client, instance, cluster}) {
  const routing = {routing: cluster, allowTransactionalWrites: true};
  await instance.createAppProfile('batch', {...routing, description: 'jobs'});
  const profile = instance.appProfile('batch');
  const [before] = await profile.getMetadata();
  assert.equal(before.etag, '');
  for (const description of ['at night', 'by day']) {
    await profile.setMetadata({...before, ...routing, description, ignoreWarnings: true});
  }
  const [after] = await profile.getMetadata();
  assert.equal(after.description, 'by day');
  const through = client.instance('orders', {appProfileId: 'batch'}).table('t');
  await through.insert({key: 'through a profile', data: {f: {q: 'v'}}});
  assert.equal((await instance.getAppProfiles())[0].length, 2);
  await profile.delete({ignoreWarnings: true});
}

export async function tablesAndFamilies({instance, table}) {
  const schema = instance.table('schema');
  await schema.create({
    families: [{name: 'one', rule: {versions: 1}}, 'plain'],
    splits: ['g', 'p'].map(each => Buffer.from(each)),
  });
  const rule = {age: {seconds: 86400, nanos: 0}, versions: 2, union: true};
  await schema.createFamily('rule', {rule});
  await schema.family('one').setMetadata({rule: {versions: 3}});
  await schema.family('plain').delete();
  const [families] = await schema.getFamilies();
  const rules = Object.fromEntries(families.map(each => [each.id, each.metadata.gcRule]));
  assert.deepEqual(Object.keys(rules).sort(), ['one', 'rule']);
  assert.equal(rules.one.maxNumVersions, 3);
  assert.equal(rules.rule.union.rules.length, 2);
  const [sampled] = await schema.sampleRowKeys();
  assert.deepEqual(sampled.map(each => each.key.toString()), ['g', 'p', '']);
  await schema.insert(['a1', 'a2', 'b1'].map(key => ({key, data: {one: {q: 'v'}}})));
  await schema.deleteRows('a');
  assert.deepEqual((await schema.getRows())[0].map(row => row.id), ['b1']);
  await schema.truncate();
  assert.deepEqual((await schema.getRows())[0], []);
  await assert.rejects(schema.create(), {code: 6});
  const [token] = await table.generateConsistencyToken();
  assert.deepEqual(await table.checkConsistency(token), [true]);
  await schema.delete();
  assert.deepEqual((await instance.getTables())[0].map(each => each.id), ['t']);
}

export async function authorizedViews({client, instance, table}) {
  const calls = client.admin.getTableAdminClient();
  const qualifiers = prefix => ({qualifiers: [], qualifierPrefixes: [Buffer.from(prefix)]});
  const subsetView = {rowPrefixes: [Buffer.from('eu-')], familySubsets: {f: qualifiers('open')}};
  const parent = `projects/${client.projectId}/instances/orders/tables/t`;
  const [operation] = await calls.createAuthorizedView({
    parent, authorizedViewId: 'europe', authorizedView: {subsetView},
  });
  await operation.promise();
  const name = `${parent}/authorizedViews/europe`;
  const [shown] = await calls.getAuthorizedView({name});
  assert.deepEqual(shown.subsetView.rowPrefixes.map(String), ['eu-']);
  const view = instance.view('t', 'europe');
  await view.insert({key: 'eu-1', data: {f: {open: 'shown'}}});
  await table.insert({key: 'eu-1', data: {g: {secret: 'hidden'}}});
  await table.insert({key: 'us-1', data: {f: {open: 'elsewhere'}}});
  const [rows] = await view.getRows();
  assert.deepEqual(rows.map(row => [row.id, row.data.f.open[0].value]), [['eu-1', 'shown']]);
  assert.equal(rows[0].data.g, undefined);
  await assert.rejects(view.insert({key: 'us-1', data: {f: {open: 'v'}}}), error =>
    [error.code, error.errors?.[0]?.code].includes(7));
  await calls.deleteAuthorizedView({name});
  await calls.close();
}

export async function backups({instance, table, cluster}) {
  await table.insert({key: 'kept', data: {f: {q: 'v'}}});
  const in6Hours = new Date(Date.now() + 6 * HOUR); // as Google's own tests have it
  await done(table.createBackup('nightly', {expireTime: in6Hours}));
  const backup = cluster.backup('nightly');
  const later = new Date(Date.now() + 48 * HOUR);
  await backup.setMetadata({expireTime: later});
  const [shown] = await backup.getMetadata();
  assert.equal(Number(shown.expireTime.seconds), Math.floor(later / 1000));
  await done(backup.copy({cluster, id: 'copied', expireTime: later}));
  const [restored, operation] = await backup.restore('restored');
  await operation.promise();
  assert.equal((await restored.row('kept').get())[0].data.f.q[0].value, 'v');
  const ids = (await instance.getBackups())[0].map(each => each.id);
  assert.deepEqual(ids.sort(), ['copied', 'nightly']);
  await restored.delete();
  await Promise.all(ids.map(id => cluster.backup(id).delete()));
}

export async function deleteInstance({instance}) {
  await instance.delete();
  assert.deepEqual(await instance.exists(), [false]);
}
