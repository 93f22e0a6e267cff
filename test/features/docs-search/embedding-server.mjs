// A stand-in for a server with /v1/embeddings. It knows a few words of one meaning; a vector counts them. Prints its port,
// then a line for each request.
import { createServer } from 'node:http';

const meanings = [
  ['car', 'automobile', 'vehicle', 'driving'],
  ['cook', 'kitchen', 'oven', 'meal'],
  ['ship', 'boat', 'harbour', 'sailing'],
];

function vectorOf(text) {
  const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
  return [...meanings.map((group) => words.filter((word) => group.includes(word)).length), 0.1];
}

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const { model, input } = JSON.parse(body);
    process.stdout.write(
      `${request.method} ${request.url} ${model} ${input.length} ${request.headers.authorization ?? '-'}\n`,
    );
    if (model === 'broken') {
      response.writeHead(500).end('no');
      return;
    }
    const data = input.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ object: 'list', model, data: model === 'short' ? data.slice(1) : data.toReversed() }),
    );
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
