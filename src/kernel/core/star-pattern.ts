/** Returns whether a text matches a pattern in which `*` matches any characters. With `open`, more text may follow behind
 * a blank. The time is bounded by the length of the pattern times the length of the text. */
export function matchesStars(pattern: string, text: string, open = false): boolean {
  const isEnd = (at: number): boolean => at === text.length || (open && /\s/.test(text[at] ?? ''));
  const [first = '', ...rest] = pattern.split('*');
  if (!text.startsWith(first)) return false;
  const last = rest.pop();
  if (last === undefined) return isEnd(first.length);
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  if (!open) return text.length - last.length >= at && text.endsWith(last);
  for (let found = text.indexOf(last, at); found >= 0; found = text.indexOf(last, found + 1))
    if (last === '' || isEnd(found + last.length)) return true;
  return false;
}
