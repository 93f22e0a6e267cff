const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const timeDigits = 10;
const randomDigits = 16;

/** True for a ULID or a UUID of version 7: ids of sessions sort by creation time. */
export function isSessionId(text: string): boolean {
  return (
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i.test(text) ||
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(text)
  );
}

/** A ULID: 26 characters that sort by creation time, ten of time and sixteen of chance. `random` holds at least 16
 * bytes. Source: github.com/ulid/spec. */
export function ulid(unixMs: number, random: Uint8Array): string {
  let text = '';
  for (let digit = timeDigits - 1; digit >= 0; digit--) text += alphabet[Math.floor(unixMs / 32 ** digit) % 32] ?? '';
  for (const byte of random.subarray(0, randomDigits)) text += alphabet[byte % 32] ?? '';
  return text;
}
