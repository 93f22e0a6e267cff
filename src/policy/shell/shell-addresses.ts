const metadata =
  /^(?:169\.254\.\d+\.\d+|metadata(?:\.google\.internal|\.goog)?|instance-data(?:\..*)?|100\.100\.100\.200|192\.0\.0\.192|fd00:ec2::254|::ffff:\S+)$/i;
const privateRange =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|0\.|fe80:|f[cd][\da-f]{2}:)/i;
/** Ports on this machine that give control of it. */
const controlPorts = new Set([
  '2375',
  '2376',
  '6443',
  '10250',
  '10255',
  '8500',
  '8200',
  '2379',
  '4243',
  '9229',
  '9222',
]);

/** Why an address should not be fetched without a yes, or null. The address may lack its scheme, as curl allows. */
export function fetchedAddress(address: string): string | null {
  const scheme =
    /^([a-z][a-z\d+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ??
    (/^(?:file|data|gopher|dict|telnet|ldap):/i.test(address) ? 'file' : 'http');
  if (!/^https?$/.test(scheme)) return `uses ${scheme}:, which reaches more than the web`;
  const host = (address.replace(/^[a-z]+:\/\//i, '').split(/[/?#\\]/)[0] ?? '').replace(/^.*@/, '');
  const name = (host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, '')).replace(/\.$/, '');
  return (
    hostProblem(name) ??
    (controlPorts.has(/:(\d+)$/.exec(host)?.[1] ?? '') ? 'reaches a port that controls a machine' : null)
  );
}

const local = 'reaches a machine of the local network';
/** A whole number or a dotted one in hexadecimal, octal or with parts missing: no reader sees which machine that is. */
const oddNumber = /^(?:0x[\da-f]+|\d+)(?:\.(?:0x[\da-f]+|\d+)){0,3}$/i;
const plainNumber = /^(?:[1-9]\d*|0)(?:\.(?:[1-9]\d*|0)){3}$/;

function hostProblem(name: string): string | null {
  if (metadata.test(name)) return 'asks the metadata service of the machine';
  if (privateRange.test(name) || /\.(?:nip|sslip|xip)\.io$|\.(?:internal|local|lan|home|corp|intranet)$/i.test(name))
    return local;
  return oddNumber.test(name) && !plainNumber.test(name) ? 'hides an address in a number' : null;
}
