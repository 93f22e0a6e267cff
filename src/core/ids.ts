const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const timeDigits = 10;
const randomDigits = 16;

/** A ULID: 26 characters that sort by creation time, ten of time and sixteen of chance. `random` holds at least 16 bytes. Source: github.com/ulid/spec. */
export function ulid(unixMs: number, random: Uint8Array): string {
  let text = '';
  for (let digit = timeDigits - 1; digit >= 0; digit--) text += alphabet[Math.floor(unixMs / 32 ** digit) % 32] ?? '';
  for (const byte of random.subarray(0, randomDigits)) text += alphabet[byte % 32] ?? '';
  return text;
}
