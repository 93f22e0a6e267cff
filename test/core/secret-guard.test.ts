import { readFileSync } from 'node:fs';
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { secretForms, secretKinds } from '../../src/core/secret-forms.js';
import { createSecretGuard, type SecretGuard } from '../../src/core/secret-guard.js';

interface Row { readonly kind: string; readonly before?: string; readonly secret: readonly string[]; readonly after?: string }

const rows = JSON.parse(readFileSync(new URL('../../fixtures/secrets/forms.json', import.meta.url), 'utf8')) as readonly Row[];
const forms = rows.map(({ kind, before = '', secret, after = '' }) => ({ kind, secret: secret.join(''), text: `${before}${secret.join('')}${after}`, before, after }));
const environment = forms.filter(({ kind }) => kind === 'environment').map(({ secret }) => secret);

function guard(unmasked: readonly string[] = []): SecretGuard {
  return createSecretGuard({ forms: secretForms(unmasked), keys: [], environment: unmasked.includes('environment') ? [] : environment, fingerprint: (value) => createHmac('sha256', 'k').update(value).digest('hex') });
}

test('every kind has rows, and there are more than sixty', () => {
  expect(secretKinds.filter((kind) => !forms.some((form) => form.kind === kind))).toEqual([]);
  expect(forms.length).toBeGreaterThan(60);
});

test.each(forms.map((form, index) => [form.kind, index, form] as const))('%s (row %i) is masked wherever it stands, and is not where its kind is switched off', (kind, _index, { text, before, after }) => {
  const mark = `${before}«secret:${kind}#1»${after}`;
  expect(guard().text(text)).toBe(mark);
});
