import type { Feature } from '../../kernel/console/feature.js';
import { goals } from '../../kernel/console/goal-port.js';
import { goalDrivers } from './goal-parts.js';
import { openGoalDrivers } from './goal-start.js';

const load = () => import('./goal-code.js');

/** A condition that turns work towards until it holds. */
export const goal: Feature = {
  name: 'goal',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: [
            "goal [condition] [--check 'command']",
            'Work until a condition is met; show, pause, resume, off',
            'conversation',
          ],
          also: 'until loop autopilot condition objective target',
          load: async () => (await load()).goal,
        },
      ],
    },
  ],
  openRun: (host) => {
    const drivers = openGoalDrivers(host, load);
    host.parts.add(goalDrivers, drivers);
    host.parts.add(goals, {
      pursue: async (session, order) => await (await load()).pursueGoal(session, order, drivers.limits),
      isActive: drivers.isActive,
    });
    return Promise.resolve(drivers.part);
  },
  openRepl: ({ current, parts }) =>
    Promise.resolve({
      start: (notices) => {
        parts.get(goalDrivers).begin(current().id, notices);
      },
    }),
};
