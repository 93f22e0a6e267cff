import type { AnsweredTurn } from '../../kernel/console/command.js';
import { version } from '../../kernel/console/version.js';
import { createHash } from 'node:crypto';
import { counted } from '../../kernel/tools/define-tool.js';
import type { ReviewedDiff } from './read-diff.js';
import { categories, type Category, type ReviewFinding, type JudgedAnswer, severities } from './findings.js';

/** A finished review. */
export interface Review extends JudgedAnswer {
  readonly diff: Pick<ReviewedDiff, 'base' | 'head' | 'leftOut'>;
  /** Null: nothing changed, so no model was asked. */
  readonly turn: Pick<AnsweredTurn, 'sessionId' | 'usage' | 'end'> | null;
}

export const reviewFormats = ['text', 'json', 'github', 'sarif'] as const;
export type ReviewFormat = (typeof reviewFormats)[number];

/** Returns what is printed for a review. */
export function formatReview(review: Review, format: ReviewFormat): string {
  switch (format) {
    case 'text':
      return textFormat(review);
    case 'json':
      return `${programText(JSON.stringify(reviewObject(review), null, 2))}\n`;
    case 'github':
      return githubFormat(review);
    case 'sarif':
      return `${programText(JSON.stringify(sarifObject(review), null, 2))}\n`;
    default:
      return format satisfies never;
  }
}

/** The runner of GitHub Actions takes `##[…]` anywhere in a line of output for a command. */
function programText(json: string): string {
  return json.replaceAll('##[', '#\\u0023[');
}

function reviewObject({ diff, turn, summary, findings, dropped }: Review): object {
  return {
    base: diff.base,
    head: diff.head,
    session_id: turn?.sessionId ?? null,
    summary,
    findings,
    dropped,
    files_left_out: diff.leftOut,
    denials: (turn?.end.denials ?? []).map(({ name, content, reason }) => ({ name, content, reason })),
    usage: turn?.usage ?? null,
  };
}

/** Returns sentences on what the review does not show as findings. */
export function reviewNotes({
  diff,
  dropped,
  findings,
}: Pick<Review, 'diff' | 'dropped' | 'findings'>): readonly string[] {
  const outside = findings.filter((finding) => !finding.in_diff).length;
  return [
    ...(outside === 0 ? [] : [`${counted(outside, 'finding')} outside of the changed lines`]),
    ...(dropped.length === 0
      ? []
      : [
          `${counted(dropped.length, 'finding')} dropped: ` +
            dropped.map(({ file, line, reason }) => `${file}:${line} (${reason})`).join(', '),
        ]),
    ...(diff.leftOut.length === 0
      ? []
      : [`${counted(diff.leftOut.length, 'file')} not reviewed, the change is too long: ${diff.leftOut.join(', ')}`]),
  ];
}

function textFormat(review: Review): string {
  const { findings, summary, turn } = review;
  const counts = severities.flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? [] : [counted(count, severity)];
  });
  const parts = [
    ...findings.map(findingText),
    [
      `${counted(findings.length, 'finding')}${counts.length === 0 ? '' : ` (${counts.join(', ')})`}. ${summary}`.trimEnd(),
      ...reviewNotes(review).map((note) => `${note}.`),
      ...(turn === null ? [] : [`Session: agent sessions show ${turn.sessionId}`]),
    ].join('\n'),
  ];
  return `${parts.join('\n\n').split('\n').map(harmlessLine).join('\n')}\n`;
}

/** Keeps a runner of GitHub Actions from taking words of the model for a command. */
function harmlessLine(line: string): string {
  return line.replace(/^(\s*):(?=:)/, '$1: ').replaceAll('##[', '# #[');
}

function findingText({ file, line, severity, title, detail, fix, in_diff: isInside, events }: ReviewFinding): string {
  const where = isInside ? '' : ' (outside of the changed lines)';
  const more = [detail, ...(fix === undefined ? [] : [`Fix: ${fix}`])].join('\n');
  const shown = events.length === 0 ? 'no event shows it' : `events ${events.map(({ seq }) => seq).join(', ')}`;
  return `${severity}  ${file}:${line}  ${title}${where}\n${more.replace(/^/gm, '  ')}\n  Shown by: ${shown}`;
}

const githubCommands = { error: 'error', warning: 'warning', note: 'notice' } as const;

/** Source: docs.github.com, "Workflow commands for GitHub Actions", and actions/toolkit `command.ts` (2026-11-28). */
function githubFormat(review: Review): string {
  const lines = review.findings.map((finding) => {
    const { file, line, end_line: end, severity, title, detail, fix, in_diff: isInside, events } = finding;
    const properties = {
      file,
      line: String(line),
      ...(end === undefined || end <= line ? {} : { endLine: String(end) }),
      title,
    };
    const message = [
      ...(isInside ? [] : ['(outside of the changed lines)']),
      detail,
      ...(fix === undefined ? [] : [`Fix: ${fix}`]),
      ...(events.length === 0 ? [] : [`Shown by events ${events.map(({ seq }) => seq).join(', ')}`]),
    ].join('\n');
    return workflowCommand(githubCommands[severity], properties, message);
  });
  const notes = [review.summary, ...reviewNotes(review)].filter((text) => text !== '');
  const session = review.turn === null ? [] : [`Session ${review.turn.sessionId}`];
  const ending = workflowCommand(
    'notice',
    { title: `Review: ${counted(review.findings.length, 'finding')}` },
    [...notes, ...session].join('\n'),
  );
  return `${[...lines, ending].join('\n')}\n`;
}

function workflowCommand(name: string, properties: Readonly<Record<string, string>>, message: string): string {
  const given = Object.entries(properties).map(([key, value]) => `${key}=${escapedProperty(value)}`);
  return `::${name} ${given.join(',')}::${escapedData(message)}`;
}

function escapedData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapedProperty(text: string): string {
  return escapedData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

const ruleNames = Object.keys(categories) as readonly Category[];

/** Source: SARIF 2.1.0 (OASIS, 27 March 2020), sections 3.13 to 3.49. */
function sarifObject(review: Review): object {
  const { diff, findings, turn } = review;
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'agent review',
            version,
            rules: ruleNames.map((id) => ({
              id,
              shortDescription: { text: categories[id] },
              defaultConfiguration: { level: 'warning' },
            })),
          },
        },
        invocations: [
          {
            executionSuccessful: true,
            toolExecutionNotifications: reviewNotes(review).map((text) => ({ level: 'note', message: { text } })),
          },
        ],
        results: findings.map(sarifResult),
        properties: { base: diff.base, head: diff.head, session_id: turn?.sessionId ?? null, summary: review.summary },
      },
    ],
  };
}

function sarifResult(finding: ReviewFinding): object {
  const { file, line, end_line: end = line, severity, category, title, detail, fix } = finding;
  return {
    ruleId: category,
    ruleIndex: ruleNames.indexOf(category),
    level: severity,
    message: { text: [title, detail, ...(fix === undefined ? [] : [`Fix: ${fix}`])].join('\n') },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: file.split('/').map(encodeURIComponent).join('/') },
          region: { startLine: line, endLine: Math.max(line, end) },
        },
      },
    ],
    partialFingerprints: {
      findingHash: createHash('sha256').update(`${category}\n${file}\n${title}`).digest('hex').slice(0, 32),
    },
    properties: { in_diff: finding.in_diff, events: finding.events },
  };
}
