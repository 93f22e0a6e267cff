import type { BlobSeal } from '../core/store.js';
import type { OpenedStore } from '../store/sqlite-store.js';
import type { Tables } from '../store/tables.js';
import { PartKey } from './parts.js';

/** A server that stores sessions. */
export interface RemotePlace {
  /** `postgresql://…` */
  readonly url: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The role whose members may read what is written here. */
  readonly team: string | null;
  /** The name of this machine among those that share tasks; null: its host name. */
  readonly machine: string | null;
  readonly now: () => number;
}

/** Opens stores on servers. Each throws a StoreError `scheme` or `tls` for an address that cannot be used. */
export interface RemoteStores {
  /** Opens a store for machines without a disk. It connects with the first question; a server that cannot be used
   * rejects each of them. */
  open(
    options: RemotePlace & { readonly notify: (message: string) => void; readonly seal: BlobSeal | null },
  ): OpenedStore;
  /** Opens tables that machines share, without a store. `close` ends the connection. */
  openTables(place: RemotePlace): { readonly tables: Tables; readonly close: () => Promise<void> };
}

export const remoteStores = new PartKey<() => Promise<RemoteStores>>('remote stores');
