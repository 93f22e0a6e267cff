/** The text of files a session has seen, by the hash of their bytes, so that a refusal can say what changed. The oldest
 * go first. */
export interface ContentMemory {
  remember(sha256: string, text: string): void;
  recall(sha256: string): string | null;
}

export function createContentMemory(maxChars: number): ContentMemory {
  const texts = new Map<string, string>();
  let chars = 0;
  return {
    remember(sha256, text) {
      if (text.length > maxChars / 8 || texts.has(sha256)) return;
      texts.set(sha256, text);
      chars += text.length;
      for (const [oldest, old] of texts) {
        if (chars <= maxChars) break;
        texts.delete(oldest);
        chars -= old.length;
      }
    },
    recall: (sha256) => texts.get(sha256) ?? null,
  };
}
