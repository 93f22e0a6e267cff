import { expect, test } from 'vitest';
import type { AttachmentData } from '../../../src/kernel/core/event.js';
import { createSender, type ModelCapabilities } from '../../../src/features/attachments/sent-files.js';

const file = (name: string): AttachmentData => ({ sha256: name, media_type: 'application/pdf', bytes: 3, name });

test('three PDFs in one message share the time in which they are read, and the next message has its own', async () => {
  const limits: number[] = [];
  const eyes: ModelCapabilities = {
    sees: true,
    readsPdf: false,
    pdfText: (_bytes, limitMs) => {
      limits.push(limitMs);
      const until = performance.now() + 40;
      while (performance.now() < until);
      return Promise.resolve({ text: 'text' });
    },
  };
  const ref = { provider: 'p', model: 'm', api: 'chat' };
  const message = (names: readonly string[]) => ({ role: 'user', content: 'read', attachments: names.map(file) });
  const conversation = { system: '', messages: [message(['a.pdf', 'b.pdf', 'c.pdf']), message(['d.pdf'])] };
  const sending = { ref, withdrawn: [], blob: () => Promise.resolve(Buffer.from('%PDF')) };
  type Given = Parameters<ReturnType<typeof createSender>>;
  await createSender()(conversation as unknown as Given[0], sending, eyes);
  const [first = 0, second = 0, third = 0, other = 0] = limits;
  expect(limits).toHaveLength(4);
  expect(first - second).toBeGreaterThanOrEqual(40);
  expect(second - third).toBeGreaterThanOrEqual(40);
  expect(other).toBe(first);
});
