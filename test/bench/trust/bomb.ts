import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { webTools } from '../../../src/features/web/open-web.js';

// `npm run t:bomb`: a server of another process sends 2 GiB of zeros as 2 MB of gzip to web_fetch. Prints how much was
// kept and how far the memory of this process grew; fails over 5 MB kept or 100 MB grown.
const server = `
const { createServer } = require('node:http');
const { gzipSync } = require('node:zlib');
const part = gzipSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 });
createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
  response.end(Buffer.concat(Array.from({ length: 32 }, () => part)));
}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
`;

async function main(): Promise<number> {
  const child = spawn(process.execPath, ['-e', server], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(child.stdout, 'data')) as readonly Buffer[];
    const url = `http://127.0.0.1:${String(line).trim()}/`;
    const [fetch] = webTools({
      allowDomains: [],
      allowLocal: [new URL(url).host],
      proxy: 'none',
      api: [],
      env: {},
      modelOutputBytes: 32_768,
      now: Date.now,
    });
    if (fetch === undefined) throw new Error('there is no web_fetch');
    globalThis.gc?.();
    const before = process.memoryUsage.rss();
    const started = performance.now();
    const { envelope } = await fetch.run(
      { url },
      {
        cwd: '/',
        session: { id: '', events: () => [], recent: () => [] },
        signal: new AbortController().signal,
        sandbox: 'off',
        limits: { timeoutMs: null, maxOutputBytes: 1_048_576 },
        knownFiles: new Map(),
        eventOutput: () => null,
        progress: () => {},
      },
    );
    const ms = performance.now() - started;
    const grown = (process.resourceUsage().maxRSS * 1024 - before) / 1e6;
    const kept = Number(envelope['bytes']) / 1e6;
    console.log(`bomb: 2 GiB, ${kept.toFixed(1)} MB kept, peak of memory +${grown.toFixed(0)} MB, ${ms.toFixed(0)} ms`);
    return kept <= 5 && grown <= 100 ? 0 : 1;
  } finally {
    child.kill();
  }
}

process.exitCode = await main();
