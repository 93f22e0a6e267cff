const words =
  'the system reads one file and builds an index of every name it found because later steps look up where each symbol was defined'.split(
    ' ',
  );

/** `count` tokens of Markdown: paragraphs, headings, lists, code; the same each time. Every word is numbered, so that
 * none can hide. */
export function generateTokens(count: number): string[] {
  const out: string[] = [];
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    return seed % below;
  };
  const word = (): string => `${words[random(words.length)] ?? 'x'}${out.length}`;
  while (out.length < count) {
    const kind = random(8);
    if (kind === 0) out.push(`## ${word()}`, '\n\n');
    else if (kind === 1) {
      for (let i = 0; i < 5 + random(40); i++) out.push(`- ${word()}`, ` ${word()}`, '\n');
      out.push('\n');
    } else if (kind === 2) {
      out.push('```ts\n');
      for (let i = 0; i < 5 + random(80); i++) out.push(`const ${word()} =`, ` ${word()};`, '\n');
      out.push('```\n\n');
    } else {
      for (let i = 0; i < 20 + random(300); i++) out.push(i % 23 === 7 ? `**${word()}** ` : `${word()} `);
      out.push('\n\n');
    }
  }
  return out;
}
