import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { exportGuard } from '../../src/kernel/secrets/known-secrets.js';
import { csvLine } from '../../src/kernel/console/line-output.js';
import { turnStats } from '../../src/commands/figures.js';
import { addUp } from '../../src/kernel/store/add-up.js';
import type { SpendingRow } from '../../src/kernel/core/store.js';
import { entriesOf } from '../../src/ui/export-entries.js';
import { entryBlock, htmlOf, markupFor } from '../../src/ui/export-html.js';
import { markdownOf } from '../../src/commands/export-session.js';
import { type ExportedSession, inOnePage, jsonlOf, readJsonl } from '../../src/kernel/console/stored-session.js';
import type { Event } from '../../src/kernel/core/event.js';
import { event, sessionRow } from '../kernel/store/samples.js';

async function joined(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

const toHtml = (given: ExportedSession): Promise<string> => joined(htmlOf(inOnePage(given)));
const toMarkdown = (given: ExportedSession): Promise<string> => joined(markdownOf(inOnePage(given)));
const toJsonl = (given: ExportedSession): Promise<string> => joined(jsonlOf(inOnePage(given)));

const nasty = '</pre><script>alert(1)</script>"\'&\u001b[31m\u202e```';
const events: readonly Event[] = [
  event(1, { kind: 'system', content: `You are agent. ${nasty}` }),
  event(2, { content: `Look at ${nasty}` }),
  event(3, {
    kind: 'assistant',
    content: `Text ${nasty}\n\`\`\`ts\nconst a = '<b>';\n\`\`\`\nafter`,
    data: { response_id: 'r1', provider: 'p', api: 'openai-chat', model: 'm', stop: 'tool' },
  }),
  event(4, {
    kind: 'tool_call',
    content: `bash(command="${nasty}")`,
    data: {
      id: 'c1',
      type: 'function',
      function: { name: 'bash', arguments: JSON.stringify({ command: nasty }) },
      response_id: 'r1',
    },
  }),
  event(5, {
    kind: 'approval',
    content: 'allowed',
    data: { tool_call_id: 'c1', decision: 'allow', by: 'user', risk: 'dangerous', reasons: [nasty], call_sha256: '' },
  }),
  event(6, {
    kind: 'tool_result',
    content: nasty,
    data: {
      tool_call_id: 'c1',
      name: 'bash',
      output: JSON.stringify({ output: nasty }),
      success: true,
      duration_ms: 3,
      diff: `+${nasty}\n-old`,
    },
  }),
  event(7, { kind: 'never_heard_of', content: nasty, data: { a: '\u0000' } }),
];
const session = { row: sessionRow({ title: nasty }), events };

test('an HTML export escapes what is recorded, runs its own script alone and loads nothing', async () => {
  const page = await toHtml(session);
  expect(page.match(/\u001b|\u202e|src=|href="(?!#)|@import|url\(/g)).toBeNull();
  const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((found) => found[1] ?? '');
  expect([scripts.length, page.match(/<script/g)?.length]).toEqual([1, 1]);
  const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)].map((found) => found[1] ?? '');
  expect([styles.length, page.match(/<style/g)?.length]).toEqual([1, 1]);
  const hash = (text = ''): string => createHash('sha256').update(text).digest('base64');
  expect(page).toContain(
    `content="default-src 'none'; style-src 'sha256-${hash(styles[0])}'; script-src 'sha256-${hash(scripts[0])}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; img-src data:"`,
  );
  expect(page.match(/&lt;script&gt;/g)?.length).toBeGreaterThan(7);
  const kinds = 'details|pre|section|div|code|h2|p|i|span|table|ul|li|blockquote';
  const open = page.replace(scripts[0] ?? '', '').match(new RegExp(`<(${kinds})[ >]`, 'g'))?.length;
  expect(page.match(new RegExp(`</(${kinds})>`, 'g'))).toHaveLength(open ?? 0);
});

const rawTags = '<img/src=x id=asks><style/x>.ask{display:none}</style>';
test.each([
  ['behind an open pre', `hello <pre> ${rawTags}`],
  ['behind an open code, kbd and script', `a <code> ${rawTags} <kbd> ${rawTags} <script> ${rawTags}`],
  ['in emphasis behind a tag', `x <pre> *${rawTags}* **${rawTags}** ~~${rawTags}~~`],
  ['in a heading', `# <pre> ${rawTags}`],
  ['in a list', `- <pre> ${rawTags}\n- [ ] <pre> ${rawTags}`],
  ['in a quote', `> <pre> ${rawTags}`],
  ['in a table', `|a <pre> ${rawTags}|b|\n|-|-|\n|<pre> ${rawTags}|c|`],
  ['in a link', `[<pre> ${rawTags}](https://example.com "<pre> ${rawTags}")`],
  ['in an image', `![<pre> ${rawTags}](x "<pre> ${rawTags}")`],
  ['in a block of HTML', `<div>\n<pre>\n\n${rawTags}\n`],
  ['in code', `<pre> \`${rawTags}\`\n\n\`\`\`"><img\n${rawTags}\n\`\`\`\n\n    ${rawTags}`],
  ['in a definition', `<pre> [a][b]\n\n[b]: https://e.com "${rawTags}"`],
  ['as an address', `<pre> <https://e.com/"${rawTags}>`],
  ['as entities', `<pre> &lt;img&gt; &#x202e; &#60;img&#62; &#8203;`],
])('an answer of a model writes no tag, style or hidden character into a page: %s', async (_name, text) => {
  const page = await toHtml({ row: sessionRow({ title: 't' }), events: [answer(text)] });
  const shown = page.slice(page.indexOf('<div id="entries">'), page.indexOf('</main>'));
  expect(shown.match(/<(?:img|style|script|kbd|form|base|link|iframe)|&#(?:x202e|60|8203);|style=/gi)).toBeNull();
});

test('links lead to web pages and mail alone', async () => {
  const given = [
    'javascript:a',
    'JaVaScRiPt:a',
    'data:text/html,a',
    'file:///etc/passwd',
    'vbscript:a',
    '//e.com',
    '#asks',
    '/s/1/answer',
    'javascript&colon;a',
    'blob:a',
    'intent:a',
  ];
  const text = given.map((href) => `[x](${href})`).join(' ');
  const page = await toHtml({
    row: sessionRow({ title: 't' }),
    events: [answer(`${text} [y](https://e.com) [z](mailto:a@e.com)`)],
  });
  const links = [...page.matchAll(/<a href="([^"]*)"/g)].map(([, href]) => href);
  expect(links).toEqual(['https://e.com', 'mailto:a@e.com']);
});

const answer = (content: string): Event =>
  event(1, {
    kind: 'assistant',
    content,
    data: { response_id: 'r', provider: 'p', api: 'openai-chat', model: 'm', stop: 'end' },
  });
const called = (name: string, args: string, more: Readonly<Record<string, unknown>>): Event[] => [
  event(4, {
    kind: 'tool_call',
    content: `${name}(…)`,
    data: { id: 'c1', type: 'function', function: { name, arguments: args }, response_id: 'r1' },
  }),
  event(6, {
    kind: 'tool_result',
    content: 'done',
    data: {
      tool_call_id: 'c1',
      name,
      output: JSON.stringify({ output: 'what came' }),
      success: true,
      duration_ms: 3,
      ...more,
    },
  }),
];

test.each([
  ['# Heading one', '<h2>Heading one</h2>'],
  ['~~gone~~ and *leaning* and `a<b>`', '<del>gone</del> and <em>leaning</em> and <code>a&lt;b&gt;</code>'],
  ['| Name | Type |\n|-|-|\n| a | <b> |', '<td>&lt;b&gt;</td>'],
  ['> quoted', '<blockquote>'],
  ['- [x] done\n- open', '<li><input checked="" disabled="" type="checkbox"> done</li>'],
  [
    '```ts\nconst a = "<b>";\n```',
    '<span class="hljs-keyword">const</span> a = <span class="hljs-string">&quot;&lt;b&gt;&quot;</span>',
  ],
  ['```unknown\n<b>\n```', '<pre><code>&lt;b&gt;</code></pre>'],
  [
    '[here](https://example.org/?a=1&b="2)',
    '<a href="https://example.org/?a=1&amp;b=&quot;2" rel="noreferrer noopener">here</a>',
  ],
  ['[here](javascript:alert(1))', 'here (javascript:alert(1))'],
  ['![pic](https://evil.example/p)', 'pic (https://evil.example/p)'],
  ['<img src=x onerror=alert(1)> text', '&lt;img src=x onerror=alert(1)&gt; text'],
])('an answer in an HTML export is rendered: %j', async (markdown, html) => {
  expect(await toHtml({ ...session, events: [answer(markdown)] })).toContain(html);
});

/** The page without the arguments that are folded away. */
async function shownCall(name: string, args: string, data: Parameters<typeof called>[2]): Promise<string> {
  const page = await toHtml({ ...session, events: called(name, args, data) });
  return page.slice(page.indexOf('<div id="entries">')).replace(/<details><summary>Arguments[^]*?<\/details>/g, '');
}

test('in an HTML export a call reads as in the terminal, and its JSON is folded away', async () => {
  const diff = '--- a/x\n+++ b/x\n@@ -7,2 +7,2 @@\n same\n-old <b>\n+new\n';
  const args = { path: 'x', old_string: 'old <b>', new_string: 'new' };
  const edit = await shownCall('file_edit', JSON.stringify(args), { diff });
  expect(edit).toContain('<div class="removed"><i>8</i>- old &lt;b&gt;</div><div class="added"><i>8</i>+ new</div>');
  expect(edit).toContain('<code><b>edit</b> x</code><span class="state ok">✔ +1 −1</span>');
  expect(edit.match(/class="change"/g)).toHaveLength(1);
  const asked = await shownCall('file_edit', JSON.stringify(args), {});
  expect(asked).toContain('- old &lt;b&gt;</div><div class="added"><i></i>+ new</div>');
  const command = await shownCall('bash', JSON.stringify({ command: 'for f in *; do echo "$f"; done' }), {});
  expect(command).toContain('<code><b>bash</b> <span class="hljs-keyword">for</span> f');
  expect(command).toContain('<pre class="result">what came</pre>');
  expect(command).not.toContain('&quot;command&quot;');
  const broken = await toHtml({ ...session, events: called('bash', '{"command": ', {}) });
  expect(broken).toContain('<pre>{&quot;command&quot;: </pre>');
});

test('in an HTML export plans and lists of steps are open and rendered', async () => {
  const plan = await shownCall('propose_plan', JSON.stringify({ plan: '# Plan\n\n- first' }), {});
  expect(plan).toMatch(/<details open><summary><code><b>plan<\/b>[^]*<h2>Plan<\/h2>\s*<ul>\s*<li>first<\/li>/);
  const steps = { items: [{ text: 'Fix total', status: 'active' }] };
  expect(await shownCall('todo', JSON.stringify(steps), {})).toMatch(
    /<details open>[^]*<div class="plain">.*Fix total/,
  );
});

test('a compaction is rendered, and a note for the model is one row', async () => {
  const data = { from_seq: 2, to_seq: 7, trigger: 'manual', tokens_before: 9, tokens_after: 3 } as const;
  const events = [
    event(8, { kind: 'compaction', content: '## Goal\n\nFix *total*.', data }),
    event(9, { kind: 'user', content: '[Note: the user undid a change.]', data: { note: true } }),
  ];
  const page = await toHtml({ ...session, events });
  expect(page).toMatch(/<details open><summary>A summary replaces events 2 to 7<\/summary>[^]*<h3>Goal<\/h3>/);
  expect(page).toContain('<summary>Told the model: the user undid a change.</summary>');
  expect(await toMarkdown({ ...session, events })).toContain('*A summary of events 2 to 7:*\n\n> ## Goal\n> \n> Fix');
});

test('a Markdown export keeps recorded text in fences longer than its own, without control characters', async () => {
  const text = await toMarkdown(session);
  expect(text.match(/[\u001b\u202e]/g)).toBeNull();
  const fences = text.split('\n').filter((line) => /^`{4,}(json|diff)?$/.test(line));
  expect(fences).toEqual(['````', '````', '````json', '````', '````diff', '````']);
  expect(text).toContain('**bash** ✔');
});

test('JSON Lines come back as they were', async () => {
  expect(readJsonl(await toJsonl(session))).toEqual(session);
});

const head = await toJsonl({ ...session, events: [] });
const whole = await toJsonl(session);

test.each([
  ['', 'the file is empty'],
  ['{"type":"event"}\n', 'line 1 is not the head of an exported session'],
  ['nonsense\n', 'line 1 is not a JSON object'],
  [`${head}{"type":"event","seq":0,"kind":"user","created_at":1}\n`, 'line 2: `seq` must be a whole number above 0'],
  [
    `${head}{"type":"event","seq":1,"kind":"user","content":5,"created_at":1}\n`,
    'line 2: `content` must be a string or null',
  ],
  [whole.replace('"version":1', '"version":9'), 'line 1: version 9 is not known here'],
])('a file that is not an export is refused with its line (%#)', (text, message) => {
  expect(() => readJsonl(text)).toThrow(message);
});

const tokens = [
  `sk-${'a1'.repeat(12)}`,
  `sk-ant-api03-${'Ab3_'.repeat(10)}`,
  `sk-or-v1-${'0f'.repeat(20)}`,
  `ghp_${'aB3'.repeat(12)}`,
  `github_pat_${'1A_b'.repeat(10)}`,
  `glpat-${'x1-Y'.repeat(5)}`,
  `npm_${'a'.repeat(36)}`,
  `AKIA${'A1B2'.repeat(4)}`,
  `AIza${'Sy-1_'.repeat(7)}`,
  `xoxb-${'123-abc'.repeat(3)}`,
  `sk_live_${'a1B2'.repeat(5)}`,
  `hf_${'aB1'.repeat(11)}`,
  `gsk_${'aB1'.repeat(11)}`,
  `eyJhbGciOiJI.eyJzdWIiOiIx.${'sig_-'.repeat(4)}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${'MIIE'.repeat(9)}\n-----END RSA PRIVATE KEY-----`,
];

test('keys of the environment and whatever looks like one are masked, hashes and ids are not', () => {
  const secret = 'pa"ss\\word-of-mine';
  const hash = '0123456789abcdef'.repeat(4);
  const words = 'task-force sketch ask-me-anything-about-it';
  const kept = `${hash} 01a1fbc2-1d56-7ed7-9daf-3f0931b92b0c c2lnbmF0dXJlK3NlYWxlZA== ${words}`;
  const redactor = exportGuard({}, [{ name: 'KEY', value: secret }], '[redacted]');
  expect(tokens.map((token) => redactor.text(`a ${token} b`))).toEqual(tokens.map(() => 'a [redacted] b'));
  expect(
    redactor.text(
      `${kept} ${secret} ${JSON.stringify(secret)} Authorization: Bearer ${'t0k'.repeat(10)} https://me:hunter2@host/`,
    ),
  ).toBe(`${kept} [redacted] "[redacted]" Authorization: Bearer [redacted] https://me:[redacted]@host/`);
  const sealed = tokens[0];
  expect(
    redactor.event(
      event(1, {
        content: `x ${secret}`,
        data: { output: JSON.stringify({ output: tokens[0] }), reasoning: [{ signature: sealed, text: secret }] },
      }),
    ),
  ).toMatchObject({
    content: 'x [redacted]',
    data: { output: '{"output":"[redacted]"}', reasoning: [{ signature: sealed, text: '[redacted]' }] },
  });
  expect(redactor.count()).toBe(tokens.length + 4 + 3);
});

test('CSV quotes what needs it and defuses formulas', () => {
  expect(csvLine(['a,b', 'say "hi"', null, -5, '=1+1', '-2', '-x', 'line\nline'])).toBe(
    '"a,b","say ""hi""",,-5,\'=1+1,-2,\'-x,"line\nline"\r\n',
  );
});

test('statistics tell turns with tools from those without, and count depth, days, models and projects', () => {
  const line = (kind: SpendingRow['kind'], more: Partial<SpendingRow> = {}): SpendingRow => ({
    sessionId: 's',
    kind,
    responseId: null,
    createdAt: 0,
    cwd: '/p',
    provider: null,
    model: null,
    role: kind === 'usage' ? 'main' : null,
    inputTokens: 0,
    outputTokens: 0,
    costUsd: null,
    ...more,
  });
  const spent = (cost: number | null): SpendingRow =>
    line('usage', { provider: 'a', model: 'm', inputTokens: 10, outputTokens: 2, costUsd: cost });
  const rows: readonly SpendingRow[] = [
    line('user'),
    spent(1),
    line('tool_call', { responseId: 'r1' }),
    line('tool_call', { responseId: 'r1' }),
    spent(1),
    line('tool_call', { responseId: 'r2' }),
    spent(null),
    line('user'),
    spent(0.5),
    { ...line('user'), sessionId: 't' },
    { ...spent(0.25), sessionId: 't', cwd: '/q', role: 'plan' },
  ];
  const result = turnStats(addUp([], rows), () => 'day');
  expect(result).toEqual({
    with_tools: { turns: 1, requests: 3, input_tokens: 30, output_tokens: 6, cost_usd: 2, unpriced: 1 },
    without_tools: { turns: 2, requests: 2, input_tokens: 20, output_tokens: 4, cost_usd: 0.75, unpriced: 0 },
    depth: { p50: 2, p95: 2, most: 2 },
    per_day: [{ day: 'day', requests: 5, input_tokens: 50, output_tokens: 10, cost_usd: 2.75, unpriced: 1 }],
    per_model: [{ model: 'a/m', requests: 5, input_tokens: 50, output_tokens: 10, cost_usd: 2.75, unpriced: 1 }],
    per_role: [
      { role: 'main', requests: 4, input_tokens: 40, output_tokens: 8, cost_usd: 2.5, unpriced: 1 },
      { role: 'plan', requests: 1, input_tokens: 10, output_tokens: 2, cost_usd: 0.25, unpriced: 0 },
    ],
    per_project: [
      { cwd: '/p', requests: 4, input_tokens: 40, output_tokens: 8, cost_usd: 2.5, unpriced: 1 },
      { cwd: '/q', requests: 1, input_tokens: 10, output_tokens: 2, cost_usd: 0.25, unpriced: 0 },
    ],
  });
});

test('a call without a result failed where the session is over, and may still run where it goes on', async () => {
  const [entry] = entriesOf(events.slice(3, 4));
  if (entry === undefined) throw new Error('the call is not an entry');
  const markup = await markupFor(new Map());
  expect(entryBlock(entry, markup)).toContain('<span class="state failed">no result</span>');
  expect(entryBlock(entry, markup, true)).toContain('<span class="state">no result yet</span>');
});
