import { pageText } from '../../../src/kernel/tools/page-text.js';

// `npm run t:pages`: pages made to keep a converter busy. Prints the milliseconds of processor time of each and fails where one takes more
// than a second for each started megabyte.
const megabyte = 1_000_000;
const fill = (part: string, size = megabyte): string => part.repeat(Math.ceil(size / part.length));
const article = fill(
  '<section><h2>Title &amp; more</h2><p>Some <b>bold</b> text with <a href="/a?b=1">a link</a>, <i>and</i> so on.</p><ul><li>one<li>two</ul><table><tr><th>a<th>b<tr><td>1<td>2</table><pre><code>x = 1;\n</code></pre></section>\n',
  892_000,
);
const pages: Readonly<Record<string, string>> = {
  'a page of 892 KB': article,
  'deep: div': fill('<div>'),
  'deep and closed': fill('<div>', megabyte / 2) + fill('</div>', megabyte / 2),
  'deep quotes': fill('<blockquote>a'),
  'deep lists': fill('<ul><li>a'),
  'deep tables': fill('<table><tr><td>a'),
  'deep emphasis': fill('<b><i>'),
  'unclosed: p b a': fill('<p><b><a href=x>a'),
  'closed and never opened': fill('</div></p></b>'),
  '1 MB of <': fill('<'),
  '1 MB of &': fill('&'),
  '1 MB of &amp;': fill('&amp;'),
  '1 MB of blanks': fill(' '),
  '1 MB of backticks in pre': `<pre>${fill('`')}`,
  'one attribute of 1 MB': `<a href="${fill('x')}">a</a>`,
  'many attributes': `<a ${fill('a=b ')}>a</a>`,
  comments: fill('<!---'),
  'comments, closed': fill('<!-- -->'),
  doctypes: fill('<!doctype '),
  '20,000 tables': fill('<table><tr><td>a<td>b</table>', 20_000 * 29),
  '20,000 tables, nested': fill('<table><tr><td>', 20_000 * 15),
  'one table of 100,000 cells': `<table>${fill('<tr><td>a<td>b', megabyte)}</table>`,
  links: fill('<a href="/x">a</a> '),
  'style attributes': fill('<i style="/*/*/*">a'),
  'style of 1 MB': `<i style="${fill('/* ')}">a`,
  'hidden and nested': fill('<p hidden><b>'),
  'script, unclosed': `<script>${fill('</scrip')}`,
  'textarea, unclosed': `<textarea>${fill('</textare&lt;')}`,
  'implied ends': fill('<li><p><dt><dd><td>'),
  'pre with lines': `<ul><li><pre>${fill('<div>a</div>')}`,
};

let failed = 0;
for (const [name, html] of Object.entries(pages)) {
  const started = process.cpuUsage();
  const { text } = pageText(html, 'https://a.example/', 'markdown');
  const { user, system } = process.cpuUsage(started);
  const ms = (user + system) / 1000;
  const isSlow = ms > 1000 * Math.ceil(html.length / megabyte);
  if (isSlow) failed++;
  console.log(
    `${isSlow ? 'SLOW' : 'ok  '}  ${ms.toFixed(0).padStart(5)} ms  ${(html.length / 1000).toFixed(0).padStart(5)} KB in  ${(text.length / 1000).toFixed(0).padStart(5)} K characters out  ${name}`,
  );
}
console.log(`pages: ${Object.keys(pages).length}, over 1 s per MB: ${failed}`);
process.exitCode = failed === 0 ? 0 : 1;
