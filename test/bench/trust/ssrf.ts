import { readFileSync } from 'node:fs';
import { isError } from '../../../src/kernel/core/envelope.js';
import { fakeWeb } from '../../features/web/fake-web.js';

// `npm run t:ssrf [file]`: addresses that a page or a model may name to reach what is not public. Each row runs through
// web_fetch with names, answers and redirects that are made up, in a session without a person; a dial to an address that
// is not public counts as wrong whatever the tool says. Prints each wrong verdict; fails where there is one.
const file = process.argv[2] ?? 'fixtures/security/ssrf-urls.json';

interface Row {
  readonly id: string;
  readonly url: string;
  readonly verdict: 'allow' | 'deny';
  readonly dns: Readonly<Record<string, readonly string[]>>;
  readonly redirects: readonly { readonly status: number; readonly location: string }[];
  readonly env?: Readonly<Record<string, string>>;
}

async function main(): Promise<number> {
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly Row[] };
  const counts = { allow: 0, deny: 0, wrong: 0, dialled: 0 };
  for (const row of cases) {
    const hosts = [...Object.keys(row.dns), URL.canParse(row.url) ? new URL(row.url).hostname : ''];
    const web = fakeWeb({
      dns: row.dns,
      env: row.env ?? {},
      said: hosts.join(' '),
      replies: row.redirects.map(({ status, location }) => ({ status, headers: { location } })),
    });
    const answer = await web.call('web_fetch', { url: row.url });
    const verdict = isError(answer) ? 'deny' : 'allow';
    const publicly = [...Object.values(row.dns).flat(2), ...(row.verdict === 'allow' ? hosts : [])];
    const stray = web.sent.filter(({ to }) => !publicly.some((address) => address.replace(/^\[|\]$/g, '') === to));
    counts[verdict]++;
    counts.dialled += web.sent.length;
    if (verdict === row.verdict && stray.length === 0) continue;
    counts.wrong++;
    console.log(JSON.stringify({ wrong: row.id, url: row.url.slice(0, 80), verdict, answer, stray }));
  }
  console.log(
    `ssrf: ${cases.length} rows, ${counts.allow} allowed, ${counts.deny} denied, ${counts.dialled} dials, ${counts.wrong} wrong`,
  );
  return counts.wrong === 0 ? 0 : 1;
}

process.exitCode = await main();
