// Change streams, by the generated stubs, which are all that @google-cloud/bigtable has of them.

import assert from 'node:assert/strict';
import {v2} from '@google-cloud/bigtable';

const MEGABYTE = 1 << 20;

function stub(client) {
  const {servicePath, port, sslCreds} = client.options.BigtableClient;
  return new v2.BigtableClient({servicePath, port, sslCreds, projectId: client.projectId});
}

// What a stream says, all of it: the messages until the server ends it.
async function messagesOf(stream) {
  const messages = [];
  for await (const message of stream) {
    messages.push(message);
  }
  return messages;
}

function words({setCell, deleteFromColumn, deleteFromFamily}, size) {
  if (setCell) {
    return `set ${setCell.columnQualifier} ${size}`;
  }
  return deleteFromColumn
    ? `delete ${deleteFromColumn.columnQualifier}`
    : `delete family ${deleteFromFamily.familyName}`;
}

// [[the change in words, its token]] and the close. A value comes in pieces if it is large.
function changesOf(messages) {
  const changes = [];
  let parts = [];
  let size = 0;
  for (const {dataChange} of messages) {
    if (!dataChange) {
      continue;
    }
    if (dataChange.rowKey.length > 0) {
      parts = [dataChange.rowKey.toString()];
    }
    for (const {chunkInfo, mutation} of dataChange.chunks) {
      size += mutation.setCell?.value.length ?? 0;
      if (!chunkInfo || chunkInfo.lastChunk) {
        parts.push(words(mutation, size));
        size = 0;
      }
    }
    if (dataChange.done) {
      changes.push([parts.join(' '), dataChange.token]);
    }
  }
  const {closeStream} = messages.at(-1);
  assert.equal(closeStream.status?.code ?? 0, 0);
  return changes;
}

async function write(table) {
  await table.row('c').createRules([{column: 'f:q', append: 'xyz'}]);
  const large = {value: Buffer.alloc(5 * MEGABYTE, 'x'), timestamp: 1000};
  await table.mutate([{key: 'd', method: 'insert', data: {f: {large}}}]);
  await table.mutate([{key: 'e', method: 'insert', data: {g: {q: 'v'}}}]);
  await table.mutate([{key: 'e', method: 'delete'}]);
}

export async function streams({client, instance}) {
  const table = instance.table('changes');
  const day = {retentionPeriod: {seconds: 86400}};
  await table.create({families: ['f', 'g'], splits: [Buffer.from('m')]});
  const admin = new v2.BigtableTableAdminClient(client.options.BigtableTableAdminClient);
  const name = table.name.replace('{{projectId}}', client.projectId);
  const update = async config => {
    const mask = {paths: ['change_stream_config']};
    const named = {name, ...(config && {changeStreamConfig: config})};
    const [operation] = await admin.updateTable({table: named, updateMask: mask});
    await operation.promise();
  };
  await update(day);
  const raw = stub(client);
  const start = Date.now();
  const stamp = millis => ({seconds: Math.floor(millis / 1000), nanos: (millis % 1000) * 1e6});
  await write(table);
  const options = {otherArgs: {headers: {'x-goog-request-params': `table_name=${name}`}}};
  const initial = raw.generateInitialChangeStreamPartitions({tableName: name}, options);
  const partitions = (await messagesOf(initial)).map(each => each.partition);
  assert.equal(partitions.length, 2);
  const request = {
    tableName: name, partition: partitions[0], endTime: stamp(Date.now() + 500),
    heartbeatDuration: {seconds: 1},
  };
  const from = {startTime: stamp(start)};
  const all = changesOf(await messagesOf(raw.readChangeStream({...request, ...from}, options)));
  assert.deepEqual(all.map(([text]) => text),
    ['c set q 3', 'd set large 5242880', 'e set q 1', 'e delete family g']);
  const tokens = [{partition: partitions[0], token: all[1][1]}];
  const rest = await messagesOf(
    raw.readChangeStream({...request, continuationTokens: {tokens}}, options));
  assert.deepEqual(changesOf(rest).map(([text]) => text), all.slice(2).map(([text]) => text));
  await update(null);
  await raw.close();
  await admin.close();
}
