import { expect, test } from 'vitest';
import { pageText } from '../../../src/kernel/tools/page-text.js';

const markdown = (html: string): string => pageText(html, 'https://a.example/b/', 'markdown').text;
const text = (html: string): string => pageText(html, 'https://a.example/b/', 'text').text;

test('a page becomes Markdown', () => {
  const page = `<html><head><title>T &amp;
    t</title><meta charset=utf-8></head><body><h1>One <b>big</b><br>head</h1><p>A <a href="/x?y=1#z">link</a>,<em> spaced </em>and <code>code</code>.<br>next
    <p>B<b></b> c <a href="#top">top</a> <a href="javascript:x()">run</a> <a href=u><img src=q></a><img src="i.png" alt="a  pic">
    <ul><li>one<li>two<ol start=3><li>x</li><li>y<p>more</ol></li></ul>
    <blockquote>quoted</blockquote><pre><code class="language-js">\nlet a = 1;\n  b &lt; c;\n</code></pre><hr>
    <table><tr><th>A<th>B<tr><td>1|2<td>two<br>lines</table><dl><dt>t<dd>d</dl>`;
  expect(pageText(page, 'https://a.example/b/', 'markdown').title).toBe('T & t');
  expect(markdown(page)).toBe(`# One **big** head

A [link](https://a.example/x?y=1#z), *spaced* and \`code\`.
next

B c top run ![a pic](https://a.example/b/i.png)

- one
- two
  3. x
  4. y

     more

> quoted

\`\`\`js
let a = 1;
  b < c;
\`\`\`

---

| A | B |
| --- | --- |
| 1\\|2 | two lines |

t
d`);
});

test('plain text has the words alone', () => {
  expect(text('<h2>Head</h2><p>A <b>bold</b> <a href=/x>link</a><ul><li>one</ul><table><tr><td>a<td>b</table>')).toBe(
    'Head\n\nA bold link\n\n- one\n\na | b',
  );
});

test('what a reader does not see is left out', () => {
  const hidden = [
    '<script>x</script>',
    '<style>x</style>',
    '<noscript>x</noscript>',
    '<template>x</template>',
    '<svg><text>x</text></svg>',
    '<iframe>x</iframe>',
    '<!-- x -->',
    '<div hidden>x<p>x</div>',
    '<span style="display:none">x</span>',
    '<p style="color:red; visibility : hidden !important">x</p>',
    '<p style="opacity:0">x</p>',
    '<p style="font-size: 0px">x</p>',
    '<p style="position:absolute;left:-9999px">x</p>',
    '<p style="dis/**/play:none;display:/*a*/none">x</p>',
    '<dialog>x</dialog>',
    '<select><option>x</select>',
  ];
  expect(hidden.filter((html) => markdown(`a${html}b`).includes('x'))).toEqual([]);
  expect(markdown('<p style="opacity:0.5;font-size:0.9em;left:-1px">seen</p>')).toBe('seen');
});

test.each([
  ['.x{display:none}', '<p class="x">'],
  ['.x { display : none !important; }', '<p class="a x b">'],
  ['#x{visibility:hidden}', '<div id="x">'],
  ['p.x.y{opacity:0}', '<p class="y x">'],
  ['span{font-size:0}', '<span>'],
  ['.a,.x{position:absolute;left:-9999px}', '<p class="x">'],
  ['/* .b{} */.x/**/{display:/**/none}', '<p class="x">'],
  ['@media screen{.x{display:none}}', '<p class="x">'],
  ['@import "a.css";@layer a{.x{display:none}}', '<p class="x">'],
  ['.x{display:block}.x{display:none}', '<p class="x">'],
  ['.x{display:none', '<p class="x">'],
])('text that the style sheet %s hides is not read in %s', (css, tag) => {
  expect(markdown(`<style>${css}</style>a ${tag}HIDDEN`)).toBe('a');
  expect(markdown(`<style>${css}</style>${tag.replace('>', ' style="color:red">')}HIDDEN`)).toBe('');
});

test.each([
  ['.y{display:none}', '<p class="x">'],
  ['p.x{display:none}', '<div class="x">'],
  ['.x{display:none}.x.open{display:block}', '<p class="x open">'],
  ['.x{display:none}p{color:red}.x{display:block}', '<p class="x">'],
  ['.js .x{display:none}', '<p class="x">'],
  ['.x:empty{display:none}', '<p class="x">'],
  ['@media print{.x{display:none}}', '<p class="x">'],
  ['@media (max-width: 600px){.x{display:none}}.y{color:red}', '<p class="x">'],
  ['@keyframes k{from{opacity:0}}.y{color:red}', '<p class="x">'],
  ['.x{display:none}', '<p class="x" style="display:block">'],
  ['.x{opacity:0.9}', '<p class="x">'],
])('text that the style sheet %s does not hide is read in %s', (css, tag) => {
  expect(markdown(`<style>${css}</style>${tag}seen`)).toBe('seen');
});

test('a style sheet for print, in a template or without scripts does not count', () => {
  const hides = '.x{display:none}';
  for (const sheet of [
    `<style media="print">${hides}</style>`,
    `<noscript><style>${hides}</style></noscript>`,
    `<template><style>${hides}</style></template>`,
  ])
    expect(markdown(`${sheet}<p class="x">seen`)).toBe('seen');
});

test('a style sheet made to be costly costs little', () => {
  const sheets = ['/*'.repeat(100_000), '{'.repeat(200_000), '@a{'.repeat(60_000), '.x{display:none}'.repeat(20_000)];
  for (const css of sheets)
    expect(markdown(`<style>${css}</style>${'<p class="y x x x">text</p>'.repeat(20_000)}<h1>seen</h1>`)).toContain(
      'seen',
    );
});

test('a hidden element ends where a browser ends it', () => {
  expect(markdown('<div><span hidden>x</div>seen')).toBe('seen');
  expect(markdown('<p hidden>x<p>seen')).toBe('seen');
  expect(markdown('<svg/><p>seen')).toBe('seen');
});

test('a table for layout stays one cell under the other', () => {
  expect(markdown('<table><tr><td><table><tr><td>in</table><td>side</table>')).toBe('in\n\nside');
});

test('a fence is longer than the backticks inside it', () => {
  expect(markdown('<pre>a ``` b</pre>')).toBe('````\na ``` b\n````');
});

test('broken pages end as they are, whatever is left open', () => {
  const broken = [
    '<',
    '<a',
    '<a href="',
    '<a href=x>t',
    '&',
    '&amp',
    '<!--',
    '<!doctype',
    '</',
    '</p></div>',
    '<pre>\n',
    '<li>',
  ];
  expect(broken.map(markdown)).toEqual(['<', '', '', '[t](https://a.example/b/x)', '&', '&', '', '', '</', '', '', '']);
});

test('pages that nest without end are written in one pass and within the most characters', () => {
  const many = 20_000;
  expect(markdown('<div>'.repeat(many) + 'deep')).toBe('deep');
  expect(markdown('<blockquote>'.repeat(many) + 'deep')).toBe(`${'> '.repeat(12)}deep`);
  expect(markdown('<ul><li>'.repeat(many)).length).toBe(0);
  expect(markdown('<table><tr><td>'.repeat(many) + 'deep')).toBe('deep');
  expect(markdown(`<p>${'word '.repeat(500_000)}`).length).toBeLessThanOrEqual(2_000_000);
  expect(markdown(`${'<div>'.repeat(60_000)}<p hidden>x</p>`)).toBe('');
});
