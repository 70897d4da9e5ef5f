// Against a Trestle server that wants TLS and a token: creates a table, writes a row, reads it.
//
//     node secured.mjs ENDPOINT CA.PEM TOKEN-FILE create write read
//
// With an empty ENDPOINT it goes where BIGTABLE_EMULATOR_HOST says, without either.
import {readFileSync} from 'node:fs';
import {Bigtable} from '@google-cloud/bigtable';
import {grpc} from 'google-gax';

function connect(endpoint, authority, tokenFile) {
  const [servicePath, port] = endpoint.split(':');
  const token = readFileSync(tokenFile, 'utf8').trim();
  const perCall = grpc.credentials.createFromMetadataGenerator((_, done) => {
    const metadata = new grpc.Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    done(null, metadata);
  });
  const tls = grpc.credentials.createSsl(readFileSync(authority));
  return new Bigtable({
    projectId: 'p',
    servicePath,
    port: Number(port),
    sslCreds: grpc.credentials.combineChannelCredentials(tls, perCall),
    metricsEnabled: false, // they would go to Google's monitoring
  });
}

const steps = {
  create: table => table.create({families: ['f']}),
  write: table => table.insert({key: 'hello', data: {f: {text: 'world'}}}),
  read: async table => {
    const [row] = await table.row('hello').get();
    console.log('hello', row.data.f.text[0].value);
  },
};

const [endpoint, authority, tokenFile, ...names] = process.argv.slice(2);
const client = endpoint
  ? connect(endpoint, authority, tokenFile)
  : new Bigtable({projectId: 'p'});
try {
  for (const name of names) {
    await steps[name](client.instance('i').table('greetings'));
  }
} finally {
  await client.close();
}
