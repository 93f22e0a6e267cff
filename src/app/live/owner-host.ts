import type { Settings } from '../../kernel/console/run-settings.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import type { QueuedMessage, SessionPort } from '../../kernel/core/session-port.js';
import type { SessionLog, SessionRow } from '../../kernel/core/store.js';
import type { Hello, OwnerMessage } from './messages.js';

/** A client that is connected to the owner. */
export interface OwnerConnection {
  readonly hello: Hello;
  send(message: OwnerMessage): void;
  /** The bytes that the client has not read yet. */
  unread(): number;
  /** Calls back with what the client sends and the owner does not answer itself: keys, sizes and the like. Values are
   * as they came: check them. */
  onMessage(listener: (message: Readonly<Record<string, unknown>> & { readonly type: string }) => void): void;
  /** Calls back each time the client has read everything. */
  onDrain(listener: () => void): void;
  /** Calls back once the client is gone, at once if it is gone already. */
  onClose(listener: () => void): void;
  /** Sends what was sent and closes the connection. */
  end(): void;
}

/** The part of a front end that serves the clients of its session. Each part may be left out. */
export interface OwnerHost {
  /** Runs a message, or queues it. Without it a message waits for a running turn, or is refused. */
  readonly deliver?: (message: QueuedMessage) => void;
  /** Takes a client whose keys come here. The connection is the host's from then on: the owner does not close it.
   * Without it, terminals are refused. */
  readonly onTerminal?: (connection: OwnerConnection) => void;
  /** The terminals of this process that show the session. */
  readonly ownTerminals?: () => number;
  /** Ends the front end in order. Without it, the process gets SIGTERM if it handles that. */
  readonly stop?: () => void;
}

/** The process that runs a session, as clients see it. */
export interface Owner {
  /** Sets what the front end does for clients. */
  serve(host: OwnerHost): void;
  /** Delivers the messages that were sent while no process ran the session. Never rejects. */
  deliverKept(): Promise<void>;
  /** The clients that follow the session now, terminals among them. */
  clients(): number;
  /** Sends what happened last and closes the socket. */
  close(): void;
}

/** A session, as its owner uses it. */
export type OwnedSession = Pick<
  SessionPort,
  'id' | 'cwd' | 'ref' | 'busy' | 'recent' | 'totals' | 'answer' | 'interrupt' | 'enqueue' | 'takeQueue' | 'subscribe'
>;

/** The parts of a run that the owner uses. */
export interface OwnerParts {
  readonly settings: Pick<Settings, 'ephemeral' | 'log'> & {
    readonly config: { readonly files: { readonly data: string } };
    readonly guard: Pick<Settings['guard'], 'text'>;
  };
  readonly store: Pick<SessionLog, 'keepMessage' | 'keptMessages' | 'dropMessage'> & {
    session(id: string): Promise<Pick<SessionRow, 'title'> | null>;
  };
  readonly row: Pick<SessionRow, 'id' | 'title'>;
  /** Default: timers that do not keep the process. */
  readonly schedule?: Schedule;
}
