import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';

const browser =
  process.env.CHROMIUM ??
  ['chromium', 'chromium-browser', 'google-chrome'].find((name) => spawnSync('which', [name]).status === 0) ??
  null;

/** Opens the page in a frame and tells, in its title, how tall the second folded part is: as it comes, after a click,
 * and after another. */
const probe = `<!doctype html><title>waiting</title><iframe src="page.html" style="width:1000px;height:900px"></iframe><script>
document.querySelector('iframe').onload = ({ target }) => {
  const page = target.contentDocument;
  const part = page.querySelectorAll(".entry > details")[1];
  const height = () => Math.round(part.getBoundingClientRect().height);
  const heights = [height()];
  for (let n = 0; n < 2; n++) { part.querySelector('summary').click(); heights.push(height()); }
  const find = page.querySelector('#find');
  find.value = 'flamingo';
  find.dispatchEvent(new Event('input'));
  const shown = [...page.querySelectorAll('.entry')].filter((entry) => !entry.hidden);
  const found = [page.querySelector('#count').textContent, shown.length, shown[0].querySelector('details').open];
  document.title = JSON.stringify({ heights, found, wide: page.documentElement.scrollWidth <= 1000, font: page.defaultView.getComputedStyle(page.querySelector('h1')).fontWeight });
};</script>`;

async function rendered(at: Place, file: string): Promise<string> {
  const profile = join(at.home, 'profile');
  mkdirSync(profile, { recursive: true });
  const { stdout } = await promisify(execFile)(
    browser ?? '',
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--disable-component-update',
      '--no-first-run',
      '--host-resolver-rules=MAP * ~NOTFOUND',
      '--allow-file-access-from-files',
      '--virtual-time-budget=2000',
      `--user-data-dir=${profile}`,
      '--dump-dom',
      pathToFileURL(file).href,
    ],
    { env: { PATH: process.env.PATH ?? '', HOME: at.home }, maxBuffer: 64 * 1024 * 1024, timeout: 50_000 },
  );
  return stdout;
}

test('a browser shows the exported page: its texts, its style, and calls that fold', async () => {
  if (browser === null) {
    console.log('there is no chromium on the PATH (or in CHROMIUM): 1 case skipped');
    return;
  }
  const at = place({ 'a.txt': 'flamingo <b>&amp;</b>\n' });
  const model = script(at, [
    {
      text: 'I read it: `a.txt`.',
      calls: [
        { name: 'file_read', arguments: { path: 'a.txt' } },
        { name: 'bash', arguments: { command: 'echo "</pre><script>document.title=1</script>"' } },
      ],
    },
    { text: 'Done </main><h1>not a heading</h1>.' },
  ]);
  await agent(at, ['-p', '--model', model, 'What is in <a.txt>?']);
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ id: string }];
  const page = join(at.home, 'page.html');
  expect((await agent(at, ['sessions', 'export', id, '-o', page])).code).toBe(0);

  const dom = await rendered(at, page);
  for (const text of [
    'What is in &lt;a.txt&gt;?',
    'I read it: <code>a.txt</code>.',
    'flamingo &lt;b&gt;&amp;amp;&lt;/b&gt;',
    'Done &lt;/main&gt;&lt;h1&gt;not a heading&lt;/h1&gt;.',
    '✔',
  ])
    expect(dom).toContain(text);
  expect([dom.match(/<details/g)?.length, dom.match(/<h1/g)?.length, dom.match(/<script/g)?.length]).toEqual([5, 1, 1]);

  writeFileSync(join(at.home, 'probe.html'), probe);
  const title = /<title>([^<]*)<\/title>/.exec(await rendered(at, join(at.home, 'probe.html')))?.[1] ?? '';
  type Seen = { heights: number[]; found: unknown; wide: boolean; font: string };
  const {
    heights: [folded = 0, open = 0, again = 0],
    found,
    wide,
    font,
  } = JSON.parse(title) as Seen;
  expect(found).toEqual(['1 of 6', 1, true]);
  expect([folded > 20 && folded < 80, open > folded + 60, again === folded, wide, font]).toEqual([
    true,
    true,
    true,
    true,
    '700',
  ]);
});
