import { isRecord } from '../../core/json.js';
import { commandsIn } from './command-files.js';
import { expandTemplate } from './expand-template.js';
import type { Place } from './found-files.js';
import { hashSkill, readSkillText, skillsIn } from './read-skills.js';

/** A file that needs trust, and what a person has to know of it. */
interface Part {
  readonly path: string;
  readonly sha256: string;
  readonly lines: readonly string[];
}

/** Lists the commands and skills of a project. A skill that cannot be looked through has a hash that no answer fits. */
export function partsOf({
  commands,
  skills,
}: {
  readonly commands: readonly Place[];
  readonly skills: readonly Place[];
}): readonly Part[] {
  const found = skillsIn(skills);
  return [
    ...commandsIn(commands).map(({ path, sha256, name, description, body }) => ({
      path,
      sha256,
      lines: [`command /${name}: ${description}`, ...runsOf(body)],
    })),
    ...[...found.skills, ...found.shadowed].map((skill) => {
      const whole = hashSkill(skill);
      const others = whole === null ? 'files that cannot all be looked at' : `${whole.files - 1} more files`;
      return {
        path: skill.path,
        sha256: whole?.sha256 ?? `unknown ${Math.random()}`,
        lines: [`skill ${skill.name}: ${skill.description} (${others})`, ...runsOf(readSkillText(skill)?.body ?? '')],
      };
    }),
  ];
}

/** The commands in a text that run when it is expanded. */
function runsOf(body: string): readonly string[] {
  const expanded = expandTemplate(body, { args: '', isFile: () => false });
  if (typeof expanded === 'string') return [];
  return expanded.calls.map((call) => {
    const given: unknown = JSON.parse(call.arguments);
    return `runs: ${isRecord(given) ? String(given.command) : ''}`;
  });
}
