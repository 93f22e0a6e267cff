import { get } from 'node:http';

/** A page that follows a session, as a browser does it. */
export interface FollowedPage {
  /** Every update of an entry, in the order in which it came: the entry of the event with this number. */
  readonly updates: readonly { readonly seq: number; readonly html: string }[];
  /** What the page shows of each entry now. */
  readonly entries: ReadonlyMap<number, string>;
  readonly states: readonly string[];
  /** Resolves once what the page has satisfies `test`. */
  until(test: (page: FollowedPage) => boolean): Promise<void>;
  close(): void;
  /** Closes the connection and opens another, which names the last event that came. */
  reconnect(): void;
}

/** Opens the page of a session at the address that `agent serve` printed, and follows it. */
export async function followPage(address: URL, id: string): Promise<FollowedPage> {
  const cookie = `agent_${address.port}=${address.searchParams.get('token') ?? ''}`;
  const from = { host: '127.0.0.1', port: address.port, headers: { cookie, host: `127.0.0.1:${address.port}` } };
  const html = await new Promise<string>((resolve, reject) => {
    get({ ...from, path: `/s/${id}` }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => {
        resolve(text);
      });
    }).on('error', reject);
  });
  const entries = new Map<number, string>();
  for (const [whole, seq] of html.matchAll(/<section class="entry[^>]* id="e(\d+)">[^]*?<\/section>/g))
    entries.set(Number(seq), whole);
  const after = /data-last="(\d+)"/.exec(html)?.[1] ?? '0';
  const updates: { seq: number; html: string }[] = [];
  const states: string[] = [];
  let lastId: string | null = null;
  let look = (): void => undefined;
  let stop = (): void => undefined;
  const take = (block: string): void => {
    const fields = new Map(
      block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    );
    lastId = fields.get('id') ?? lastId;
    const data: unknown = JSON.parse(fields.get('data') ?? 'null');
    if (fields.get('event') === 'state') states.push(String(data));
    if (fields.get('event') !== 'entries') return;
    for (const entry of data as { seq: number; html: string }[]) {
      updates.push(entry);
      entries.set(entry.seq, entry.html);
    }
  };
  const connect = (): void => {
    const headers = { ...from.headers, ...(lastId === null ? {} : { 'last-event-id': lastId }) };
    const sent = get({ ...from, headers, path: `/s/${id}/events?after=${after}`, agent: false }, (response) => {
      let rest = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        const blocks = (rest + part).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) take(block);
        look();
      });
      response.on('error', () => undefined);
    });
    sent.on('error', () => undefined);
    stop = () => sent.destroy();
  };
  connect();
  const page: FollowedPage = {
    updates,
    entries,
    states,
    until: (test) =>
      new Promise((resolve) => {
        look = () => {
          if (test(page)) resolve();
        };
        look();
      }),
    close: () => {
      stop();
    },
    reconnect: () => {
      stop();
      connect();
    },
  };
  return page;
}
