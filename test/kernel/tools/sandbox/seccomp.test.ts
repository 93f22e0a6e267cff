import { expect, test } from 'vitest';
import { seccompFilter } from '../../../../src/kernel/tools/sandbox/bubblewrap-profile.js';

const audit = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
type Call = { readonly machine?: number; readonly number: number; readonly args?: readonly [bigint, bigint] };

/** Runs the filter as the kernel does: over the little-endian bytes of struct seccomp_data. */
function verdict(
  arch: 'x64' | 'arm64',
  { machine = audit[arch], number, args = [0n, 0n] }: Call,
  keepsAttributes = false,
): string {
  const filter = Buffer.from(seccompFilter(arch, keepsAttributes) ?? []);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(machine, 4);
  args.forEach((value, index) => data.writeBigUInt64LE(value, 16 + index * 8));
  let loaded = 0;
  for (let at = 0; at < filter.length; at += 8) {
    const [code, whenTrue, whenFalse, value] = [
      filter.readUInt16LE(at),
      filter.readUInt8(at + 2),
      filter.readUInt8(at + 3),
      filter.readUInt32LE(at + 4),
    ];
    if (code === 0x20) loaded = data.readUInt32LE(value);
    else if (code === 0x06)
      return (
        {
          0x7fff0000: 'allow',
          0x80000000: 'kill',
          0x00050001: 'EPERM',
          0x00050026: 'ENOSYS',
          0x00050061: 'EAFNOSUPPORT',
          0x0005005f: 'EOPNOTSUPP',
        }[value] ?? value.toString(16)
      );
    else {
      const holds = { 0x15: loaded === value, 0x35: loaded >= value, 0x45: (loaded & value) !== 0 }[code];
      at += (holds === true ? whenTrue : whenFalse) * 8;
    }
  }
  return 'ran off the end';
}

test.each([
  ['x64', 'read', { number: 0 }, 'allow'],
  ['x64', 'execve', { number: 59 }, 'allow'],
  ['arm64', 'read', { number: 63 }, 'allow'],
  ['arm64', 'execve', { number: 221 }, 'allow'],
  ['x64', 'ioctl TCGETS', { number: 16, args: [0n, 0x5401n] }, 'allow'],
  ['arm64', 'ioctl TCGETS', { number: 29, args: [0n, 0x5401n] }, 'allow'],
  ['x64', 'TIOCSTI', { number: 16, args: [0n, 0x5412n] }, 'EPERM'],
  ['arm64', 'TIOCSTI', { number: 29, args: [0n, 0x5412n] }, 'EPERM'],
  ['x64', 'TIOCSTI with high bits', { number: 16, args: [0n, 0x7fff_0000_5412n] }, 'EPERM'],
  ['x64', 'TIOCLINUX', { number: 16, args: [0n, 0x541cn] }, 'EPERM'],
  ['x64', 'clone of a thread', { number: 56, args: [0x3d0f00n, 0n] }, 'allow'],
  ['x64', 'clone of a namespace', { number: 56, args: [0x10000011n, 0n] }, 'EPERM'],
  ['arm64', 'clone of a namespace', { number: 220, args: [0x10000011n, 0n] }, 'EPERM'],
  ['x64', 'clone3', { number: 435 }, 'ENOSYS'],
  ['arm64', 'clone3', { number: 435 }, 'ENOSYS'],
  ['x64', 'unshare of files', { number: 272, args: [0x400n, 0n] }, 'allow'],
  ['x64', 'unshare of a namespace', { number: 272, args: [0x40000000n, 0n] }, 'EPERM'],
  ['arm64', 'unshare of time', { number: 97, args: [0x80n, 0n] }, 'EPERM'],
  ['x64', 'AF_INET', { number: 41, args: [2n, 1n] }, 'allow'],
  ['x64', 'AF_NETLINK', { number: 41, args: [16n, 3n] }, 'allow'],
  ['x64', 'AF_VSOCK', { number: 41, args: [40n, 1n] }, 'EAFNOSUPPORT'],
  ['arm64', 'AF_UNIX', { number: 198, args: [1n, 1n] }, 'allow'],
  ['arm64', 'AF_ALG', { number: 198, args: [38n, 5n] }, 'EAFNOSUPPORT'],
  ['x64', 'x32 call', { number: 0x4000_0000 }, 'ENOSYS'],
  ['x64', 'call of a 32-bit program', { machine: 0x40000003, number: 3 }, 'kill'],
  ['arm64', 'call of another machine', { machine: audit.x64, number: 0 }, 'kill'],
] as const)('%s: %s', (arch, _name, call, expected) => {
  expect(verdict(arch, call)).toBe(expected);
});

test('what no command needs is refused on both machines, what lies beside it is not', () => {
  const refused = {
    x64: [
      101, 165, 166, 155, 161, 246, 248, 249, 250, 298, 304, 308, 310, 311, 312, 313, 320, 321, 323, 425, 426, 427, 428,
      429, 430, 431, 432, 433, 438, 442, 467,
    ],
    arm64: [
      117, 39, 40, 41, 51, 104, 105, 217, 218, 219, 241, 265, 268, 270, 271, 272, 273, 280, 282, 294, 425, 426, 427,
      428, 429, 430, 431, 432, 433, 438, 442, 467,
    ],
  };
  const neighbours = {
    x64: [102, 164, 251, 299, 309, 322, 424, 434, 439],
    arm64: [113, 38, 216, 240, 281, 424, 434, 439],
  };
  for (const arch of ['x64', 'arm64'] as const) {
    expect(refused[arch].filter((number) => verdict(arch, { number }) !== 'EPERM')).toEqual([]);
    expect(neighbours[arch].filter((number) => verdict(arch, { number }) !== 'allow')).toEqual([]);
  }
});

test('attributes and flags of files can be set in the sandbox, and not in a rehearsal', () => {
  const calls = { x64: [188, 189, 190, 197, 198, 199, 463, 466], arm64: [5, 6, 7, 14, 15, 16, 463, 466] };
  const ioctl = { x64: 16, arm64: 29 };
  for (const arch of ['x64', 'arm64'] as const) {
    expect(new Set(calls[arch].map((number) => verdict(arch, { number }, true)))).toEqual(new Set(['EOPNOTSUPP']));
    expect(new Set(calls[arch].map((number) => verdict(arch, { number })))).toEqual(new Set(['allow']));
    const flags = { number: ioctl[arch], args: [0n, 0x4008_6602n] } as const;
    expect([verdict(arch, flags, true), verdict(arch, flags)]).toEqual(['EPERM', 'allow']);
    expect(verdict(arch, { number: ioctl[arch], args: [0n, 0x5412n] }, true)).toBe('EPERM');
    expect(verdict(arch, { number: 442 }, true)).toBe('EPERM');
  }
});

test('a processor that is not known has no filter', () => {
  expect(seccompFilter('mips')).toBeNull();
});
