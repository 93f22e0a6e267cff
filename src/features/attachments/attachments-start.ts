import type { PdfText } from './sent-files.js';
import type { OpenPictures, TakenImage, Pictures } from '../../kernel/console/pictures.js';
import type { AttachmentData } from '../../kernel/core/event.js';
import type { Attachments, KeptAttachments } from '../../kernel/core/files/attached-formats.js';
import type { ModelRef } from '../../kernel/core/projection.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { MatchedFile } from '../../kernel/core/tool.js';
import { findModel } from '../../kernel/providers/models.js';
import { isWireName, knownWires } from '../../kernel/providers/wires/known-wires.js';
import type { Settings } from '../../kernel/console/run-settings.js';

const loadFiles = () => import('./image-files.js');

type Source = Pick<Settings, 'cwd' | 'config' | 'env'>;
type Code = Awaited<ReturnType<typeof loadCode>>;

export const openPictures: OpenPictures = (settings, processes) => {
  const code = loadOnce(loadCode);
  const keep: Attachments['keep'] = async (files) => await (await code.get()).keep(files);
  const waiting = createWaiting();
  const takeBytes = async (file: MatchedFile): Promise<TakenImage> => {
    const kept = await keep([file]);
    const [attachment] = kept.attachments;
    if (attachment === undefined) return { ok: false, problem: kept.refused.join(' ') };
    const { labelOf } = await code.get();
    return { ok: true, chip: waiting.add(kept, attachment, labelOf) };
  };
  const take = async (path: string): Promise<TakenImage> => {
    const { readPicture } = await code.get();
    const read = readPicture(path, settings.cwd);
    if (read.ok) return await takeBytes(read.file);
    return { ok: false, problem: read.problem ?? `There is no file ${path}.` };
  };
  return {
    attachments: {
      keep,
      named: async (text, cwd) => {
        const chips = await waiting.named(text);
        const lost = waiting.lost(text).map((chip) => `The image for ${chip} is gone. Attach it again.`);
        if (chips.length === 0 && lost.length === 0 && !mayMention.test(text)) return null;
        const { mentioned } = await code.get();
        const read = mentioned(text, cwd);
        const files = await keep(read.flatMap((one) => (one.ok ? [one.file] : [])));
        const problems = read.flatMap((one) => (one.ok || one.problem === null ? [] : [one.problem]));
        return mergeAttachments([...chips, files, { attachments: [], blobs: [], refused: [...lost, ...problems] }]);
      },
      sent: async (conversation, sending) => {
        const { send } = await code.get();
        return await send(conversation, sending, eyesOf(settings, sending.ref));
      },
    },
    takeBytes,
    attachNext: (chip) => {
      waiting.due(chip);
    },
    take,
    pasted: async (given) => {
      const here = mayBeOfWindows.test(given) ? (await code.get()).pathsOfWindows(given, settings.env) : null;
      const text = here ?? given;
      if (!mayBePaths.test(text)) return here === null ? null : { ok: true, chip: here };
      const taken = code.get().then(async ({ pastedPaths }) => await takeAll(pastedPaths(text) ?? [], take));
      waiting.written(given, taken);
      return (await taken) ?? (here === null ? null : { ok: true, chip: here });
    },
    clipboard: async () => {
      const { clipboardPicture } = await code.get();
      const { env, cwd } = settings;
      const place = { env, cwd, platform: process.platform };
      const file = processes && (await clipboardPicture({ ...place, processes }));
      if (file) return await takeBytes(file);
      const problem = 'No image in the clipboard, or no program to read it. On Linux, install wl-paste or xclip.';
      return { ok: false, problem };
    },
  };
};

/** Null where nothing is named, or a file is not there: it is no more than a text then. */
async function takeAll(paths: readonly string[], take: Pictures['take']): Promise<TakenImage | null> {
  const chips: string[] = [];
  for (const path of paths) {
    const taken = await take(path);
    if (!taken.ok) return taken.problem.startsWith('There is no file') ? null : taken;
    chips.push(taken.chip);
  }
  return chips.length === 0 ? null : { ok: true, chip: chips.join(' ') };
}

async function loadCode() {
  const { createSender, keepFiles, scalePicture, ...code } = await loadFiles();
  const keep: Attachments['keep'] = (files) => keepFiles(files, (picture) => scalePicture(picture));
  return { ...code, keep, send: createSender() };
}

function eyesOf({ config }: Source, { provider, model, api }: ModelRef): Parameters<Code['send']>[2] {
  return {
    sees: findModel(provider, model, config.provider.models)?.vision ?? null,
    readsPdf: isWireName(api) && knownWires[api].readsPdf,
    pdfText,
  };
}

/** The most characters of a PDF that go to a model whose wire has no place for it. */
const mostPdfChars = 100_000;

/** Reads a PDF in a worker, as the tools for the web do. */
async function pdfText(bytes: Uint8Array, limitMs: number): Promise<PdfText> {
  const { convertPage } = await loadFiles();
  const { signal } = new AbortController();
  try {
    const text = (await convertPage({ kind: 'pdf', bytes }, { signal, pdfMs: Math.ceil(limitMs) })).text.trim();
    const more = text.length - mostPdfChars;
    return {
      text: more <= 0 ? text : `${text.slice(0, mostPdfChars).toWellFormed()}\n[… ${more} characters more …]`,
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Images that wait for the message that contains their chip. */
interface Waiting {
  /** Returns the chip, which no other image has. */
  add(kept: KeptAttachments, attachment: AttachmentData, labelOf: Code['labelOf']): string;
  /** Attaches the image of this chip to the next message. */
  due(chip: string): void;
  /** Notes a pasted text that names images, for a message that is sent before its chip replaces it. */
  written(text: string, taken: Promise<TakenImage | null>): void;
  named(text: string): Promise<readonly KeptAttachments[]>;
  /** Returns the chips in a text whose images are gone: it was written in an earlier run. */
  lost(text: string): readonly string[];
}

function createWaiting(): Waiting {
  const waiting = new Map<string, KeptAttachments>();
  const next: string[] = [];
  const pasted = new Map<string, Promise<TakenImage | null>>();
  return {
    add(kept, attachment, labelOf) {
      let chip = `[${labelOf(attachment)}]`;
      const isOther = (taken: KeptAttachments | undefined): boolean =>
        taken !== undefined && taken.attachments[0]?.sha256 !== attachment.sha256;
      for (let number = 2; isOther(waiting.get(chip)); number++)
        chip = `[${labelOf({ ...attachment, name: `${attachment.name} (${number})` })}]`;
      waiting.delete(chip);
      waiting.set(chip, kept);
      for (const oldest of [...waiting.keys()].slice(0, -mostWaiting)) waiting.delete(oldest);
      return chip;
    },
    due(chip) {
      next.push(chip);
    },
    written(text, taken) {
      pasted.set(text, taken);
      for (const oldest of [...pasted.keys()].slice(0, -mostWaiting)) pasted.delete(oldest);
    },
    async named(text) {
      const due = next.splice(0);
      const early = [...pasted].filter(([written]) => text.includes(written)).map(([, taken]) => taken);
      for (const taken of await Promise.all(early)) if (taken?.ok) due.push(taken.chip);
      const all = [text, ...due].join(' ');
      return [...waiting].flatMap(([chip, kept]) => (all.includes(chip) ? [kept] : []));
    },
    lost: (text) => (text.match(chipForm) ?? []).filter((chip) => !waiting.has(chip)),
  };
}

/** The most images that are kept in memory: a message with a chip may be sent again. */
const mostWaiting = 20;

/** A chip as `labelOf` writes it. */
const chipForm = /\[[^[\]\n]{1,200}\.(?:png|jpe?g|gif|webp)(?: \(\d+\))? \d{1,5}x\d{1,5}\]/gi;

/** Paths of Windows become paths of WSL. */
const mayBeOfWindows = /^\s*"?(?:[A-Za-z]:[\\/]|\\\\wsl)/i;

/** Most pastes are no paths. */
const mayBePaths = /^[^\n]{1,8192}\.(?:png|jpe?g|gif|webp|pdf)['"]?\s*$/i;

/** Most messages name no image, so no code is loaded for them. */
const mayMention = /@[^@\n]{1,1024}\.(?:png|jpe?g|gif|webp|pdf)\b/i;

/** The same file is kept once. */
function mergeAttachments(all: readonly KeptAttachments[]): KeptAttachments {
  const attachments = all.flatMap((kept) => kept.attachments);
  return {
    attachments: attachments.filter(
      ({ sha256 }, index) => attachments.findIndex((other) => other.sha256 === sha256) === index,
    ),
    blobs: all.flatMap(({ blobs }) => blobs),
    refused: all.flatMap(({ refused }) => refused),
  };
}
