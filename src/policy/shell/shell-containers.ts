import { isInside } from '../paths.js';
import { change, danger, pathsOf } from './shell-findings.js';
import { parseOptions, valuesOf } from './shell-options.js';
import { asks, wordsOf } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const containerHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['docker', docker],
  ['podman', docker],
  ['nerdctl', docker],
  ['docker-compose', compose],
  ['podman-compose', compose],
]);

const reads =
  /^(?:ps|images|image (?:ls|list|inspect|history)|container (?:ls|list|ps|top|port|logs|stats|diff)|volume (?:ls|inspect)|network (?:ls|inspect)|logs|version|info|system (?:df|info)|stats|top|port|history|diff|search|manifest inspect|context (?:ls|show)|buildx (?:ls|version|du)|plugin ls|node ls|service (?:ls|ps|logs)|stack (?:ls|ps|services))(?: |$)/;
const changes =
  /^(?:build|buildx build|buildx bake|image build|pull|image pull|tag|image tag|create|start|stop|restart|pause|unpause|wait|network create|volume create|container (?:start|stop|restart))(?: |$)/;

function docker(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  if (/^(?:-H|--host|--context|-c)\b/.test(text)) return danger(call, 'controls another machine');
  if (/^compose\b/.test(text)) return compose({ ...call, args: call.args.slice(1) });
  if (/^(?:container )?inspect /.test(text)) return inspect(text, call);
  if (/^events\b/.test(text) || (reads.test(text) && waits(text))) return change(call, 'runs until it is stopped');
  if (reads.test(text)) return asks(call);
  if (/^(?:build|buildx build|image build) .*\w+:\/\//.test(text)) return danger(call, 'builds what lies elsewhere');
  if (changes.test(text)) return mounted(call) ?? change(call, 'changes containers');
  if (/^(?:run|container run) /.test(text)) return run(call);
  return danger(call, 'runs, removes, enters or publishes containers');
}

function waits(text: string): boolean {
  return (
    /^(?:\S+ )?logs .*(?:-f\b|--follow)|^logs (?:-f\b|--follow)/.test(text) ||
    (/^(?:container )?stats\b/.test(text) && !/--no-stream/.test(text))
  );
}

const hunts = /pass|secret|token|key|cred/i;

/** All of a container's settings hold its environment, and that its passwords. */
function inspect(text: string, call: Invocation): readonly Finding[] {
  if (hunts.test(wordsOf(call.place.next ?? [])))
    return danger(call, 'looks for secrets in the settings of a container');
  if (/(?:-f|--format)\b/.test(text))
    return /\.Env\b|json \.(?:Config)?\s*}}|\.Config\s*}}|range/.test(text)
      ? danger(call, 'prints the environment of a container')
      : asks(call);
  return call.args.some(({ text: word }) => word.startsWith('--type='))
    ? asks(call)
    : change(call, 'prints the settings of a container, its environment among them');
}

const library = new Set(
  'adminer alpine amazonlinux bash busybox caddy cassandra couchdb debian eclipse-temurin elasticsearch elixir erlang fedora gcc golang gradle haproxy haskell hello-world httpd influxdb julia kong mariadb maven memcached mongo mysql nats neo4j nginx node openjdk perl php postgres python rabbitmq redis registry ruby rust swift traefik ubuntu'.split(
    ' ',
  ),
);

/** An image of the library (`node:20`) in a container that sees nothing of the machine but the workspace. */
function run(call: Invocation): readonly Finding[] {
  const at = call.args.findIndex(({ text }) => text === 'run') + 1;
  const takes =
    '-e --env -p --publish -v --volume -w --workdir --name --entrypoint -u --user -m --memory --cpus --mount --network --platform --pull --label -l -h --hostname --restart --shm-size --ulimit --add-host';
  const options = parseOptions(call.args.slice(at), takes);
  const [image] = options.operands;
  const plain = image && !image.dynamic && library.has(image.text.replace(/:[\w.-]+$/, ''));
  const sources = valuesOf(options, '-v', '--volume')
    .map(({ text }) => text.split(':')[0] ?? '')
    .filter((source) => /[/.~\0]/.test(source));
  const outside = sources.some(
    (source) =>
      source.includes('\0') || !pathsOf(source, call.scan).every((path) => isInside(path, call.scan.context.workspace)),
  );
  if (
    !plain ||
    outside ||
    options.flags.some(({ name }) => /^--(?:mount|env-file|volumes-from|gpus|restart|userns|uts|ipc|cgroup)/.test(name))
  )
    return danger(call, 'runs, removes, enters or publishes containers');
  return mounted(call) ?? change(call, 'runs an image of the library');
}

function mounted(call: Invocation): readonly Finding[] | null {
  const words = call.args.map(({ text }) => text);
  const outside = words.some(
    (text, index) =>
      /^(?:--privileged|--cap-add|--device|--pid|--net(?:work)?=host|--security-opt|--ipc|--userns)/.test(text) ||
      (text === 'host' && /^--net(?:work)?$/.test(words[index - 1] ?? '')) ||
      (/^\/[^:]*:/.test(text) &&
        !pathsOf(text.split(':')[0] ?? '', call.scan).every((path) => isInside(path, call.scan.context.workspace))),
  );
  return outside ? danger(call, 'gives a container the machine') : null;
}

function compose(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  const verb = text.replace(/^(?:(?:-f|--file|-p|--project-name|--profile)[= ]\S+ )+/, '');
  if (/(?:-f|--file)[= ]\w+:\/\//.test(text)) return danger(call, 'runs what is described elsewhere');
  if (/\b(?:down\b.*(?:-v|--volumes|--rmi)|rm\b|exec\b|run\b|kill\b|push\b|cp\b)/.test(text))
    return danger(call, 'removes, enters or publishes containers');
  if (/^logs\b/.test(verb) && /\s(?:-f|--follow)\b/.test(verb)) return change(call, 'runs until it is stopped');
  if (
    /^(?:ps|ls|images|top|version|port|logs)(?: |$)|^config (?:--services|--images|--volumes|--profiles|-q|--quiet)$/.test(
      verb,
    )
  )
    return asks(call);
  return change(call, 'changes containers');
}
