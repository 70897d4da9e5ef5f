// Drives a Bigtable server by Google's library for Node.js as applications do.
//
//   BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 node bigtable.mjs PROJECT
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not.

import {Bigtable} from '@google-cloud/bigtable';
import * as admin from './admin.mjs';
import * as changes from './changes.mjs';
import * as rows from './rows.mjs';
import * as sql from './sql.mjs';

const [projectId] = process.argv.slice(2);
const client = new Bigtable({projectId});
const instance = client.instance('orders');
const table = instance.table('t');
const program = {client, instance, table, cluster: instance.cluster('orders-c1')};

const checks = {
  'an instance and its clusters': admin.anInstance,
  'app profiles': admin.appProfiles,
  'tables and families': admin.tablesAndFamilies,
  'authorized views': admin.authorizedViews,
  'backups': admin.backups,
  'writes and what they refuse': rows.writes,
  'conditions, increments, appends': rows.atomics,
  'filters': rows.filters,
  'ranges': rows.ranges,
  'bulk writes': rows.bulk,
  'wide and long scans': rows.scans,
  'large cells': rows.largeCells,
  'change streams': changes.streams,
  'SQL and its parameters': sql.parameters,
  'SQL over a table': sql.ofTable,
  'the end of the instance': admin.deleteInstance,
};

for (const [name, run] of Object.entries(checks)) {
  try {
    await run(program);
    console.log('ok', name);
  } catch (error) {
    const own = error.stack?.split('\n').filter(line => line.includes('.mjs:')) ?? [];
    console.error(['FAILED', name, error.message, own[0]].join(' '));
    process.exitCode = 1;
  }
}
await client.close();
