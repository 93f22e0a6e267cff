import { change, danger } from './shell-findings.js';
import { asks } from './shell-queries.js';
import type { Arg, Finding, Handler, Invocation } from './shell-types.js';

export const mediaHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['identify', looks(/^-(?:verbose|ping|format|quiet)$/)],
  ['exiftool', exif],
  ['exiftran', (call) => change(call, 'edits pictures')],
  ['exiv2', looks(/^-(?:s+|S|j|json|G\d?|a|u|n|ver|csv|h|t|T|d)$/)],
  [
    'ffprobe',
    looks(
      /^-(?:v|loglevel|hide_banner|show_\w+|of|print_format|output_format|select_streams|i|pretty|count_frames|sexagesimal|unit)$/,
    ),
  ],
  ['mediainfo', looks(/^--(?:Output=\w+|Full|Version)$|^-f$/)],
  ['pdfinfo', looks(/^-(?:box|meta|js|isodates|f|l|enc|v)$/)],
  ['pdffonts', looks(/^-(?:f|l)$/)],
  ['soxi', looks(/^-[a-zA-Z]$/)],
  ['pdftotext', pdfText],
  ['import', (call) => danger(call, 'takes a picture of the screen')],
]);

const exifLooks = looks(
  /^-(?:s+|S|j|json|G\d?|a|u|n|ver|csv|h|t|T|d|r|Model|Make|DateTimeOriginal|CreateDate|ImageSize|ImageWidth|ImageHeight|GPS(?:Latitude|Longitude|Position)|Orientation|FileType|MIMEType|Title|Author|Artist|Copyright|FileSize|ISO|Software)$/,
);

/** A condition or a format of exiftool is code, and `-FileName=` moves the file. */
function exif(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) =>
    /^-(?:if\d*|config|execute|@|p|printFormat|stay_open|(?:filename|directory|testname|hardlink|symlink)[<=].*)$/i.test(
      text,
    ),
  )
    ? danger(call, 'runs code or moves files')
    : exifLooks(call);
}

const plainFile = /^[^:|@=%]+$/;

/** A program that shows what a file is, with options that only choose what is shown and operands that are plain
 * files. */
function looks(harmless: RegExp): Handler {
  return (call) =>
    call.args.every((arg, index) =>
      arg.text.startsWith('-') ? harmless.test(arg.text) : plainFile.test(arg.text) || isFormat(call.args[index - 1]),
    )
      ? asks(call)
      : change(call, 'is not known to only read');
}

function isFormat(before: Arg | undefined): boolean {
  return before !== undefined && /^-(?:format|show_entries|select_streams|of|print_format|d)$/.test(before.text);
}

function pdfText(call: Invocation): readonly Finding[] {
  return call.args.at(-1)?.text === '-' &&
    call.args.slice(0, -1).every(({ text }) => /^-(?:layout|raw|f|l|enc|nopgbrk|q)$/.test(text) || plainFile.test(text))
    ? asks(call)
    : change(call, 'writes a file of text');
}
