import { isInside } from '../guarded-paths.js';
import {
  type Code,
  change,
  danger,
  type Finding,
  has,
  type Invocation,
  type Options,
  parseOptions,
  pathsOf,
  valuesOf,
  writeTo,
} from './invocation.js';
import { asks, asksTool, wordsOf } from './steering-files.js';

export const cloudCodes: Readonly<Record<string, Code>> = { cloud };

const secrets =
  /secret|token|password|passwd|credential|get-parameter|get-login|kms|print-|env (?:pull|get)|configs?(?::get| get(?!-value)|:export)|auth(?! (?:list|status|describe)\b)|iam create|session-token|assume-role|keys? (?:list|show|create)|list-keys|connection-string|ssm|kubeconfig|get-authorization|get-federation|--with-decryption|sas\b/i;
const harmlessConfig =
  /^(?:gcloud config (?:list|configurations list)|gcloud config get(?:-value)? (?:core\/)?(?:project|account|compute\/(?:zone|region))|aws configure (?:list|list-profiles)|aws configure get (?:[\w.]*\.)?(?:region|output)|az (?:account show|configure --list-defaults)|gcloud auth list|doctl auth list)(?: |$)/;
const questions =
  /(?:^|\s)(?:ls|list|describe(?:-[\w-]+)?|get(?:-[\w-]+)?|show|status|info|whoami|version|--version|--help|help|list-[\w-]+|logs|history|search|lint|template|repo list|sts get-caller-identity|projects|ps|apps|regions|account show|head-[\w-]+|tail|filter-log-events|lookup-events|read|addons|releases|domains|inspect|du|stat|validate|config list|head|releases:info|addons:info|pg:info|apps:info|domains:list)(?:\s|$)/;
const projectTools =
  /(?:^|\s)(?:init|dev|offline|emulators:start|serve|build|local|package|validate|scaffold|generate|synth|start|run-dev|link|types|gen)(?:\s|$)/;
const acts =
  /(?:^|\s)(?:get-object|rm|rb|mb|cp|mv|sync|del\S*|put\S*|create\S*|delete\S*|destroy\S*|remove\S*|update\S*|run\S*|start\S*|stop\S*|terminate\S*|deploy\S*|apply|set\S*|exec|ssh|publish|push|upload|install|upgrade|uninstall|rollback|scale|restart|reboot\S*|invoke\S*|send\S*|attach\S*|detach\S*|modify\S*|purge|reset|import|restore\S*|link|login|logout|promote|alias|add\S*|terminate|call|api|rsync|cat|download|sql|eval|console|shell|proxy|presign|signurl|enable\S*|disable\S*|register\S*|deregister\S*|revoke\S*|authorize\S*|tag\S*|untag\S*|copy\S*|cancel\S*|disassociate\S*|associate\S*|release-\S*|schedule\S*|undeploy|move|rename|failover\S*|export|execute\S*|query|insert|mk|load|extract|suspend|resume|drain|cordon|patch|replace|pg:\S+|config:(?:set|unset)|domains:(?:add|remove)|ps:\S+|maintenance:\S+)(?:\s|$)/;
/** What may choose another server, another program or a file as an answer. */
const steering =
  /(?:^|\s)--(?:endpoint-url|cli-input-json|cli-input-yaml|no-verify-ssl|ca-bundle|impersonate-service-account|flags-file|follow|watch|api-url|api-host)\b/;

/** Questions whose answer holds the environment of a service, the data of its users or its keys. */
const revealing = new RegExp(
  `--include-values?\\b|--dump-config|--attribute[ =]userData|(?:^|\\s)(?:${[
    'get-api-keys?',
    'list-api-keys',
    'api-keys',
    'appsettings',
    'list-publishing-\\S+',
    'get-function(?:-configuration)?',
    'list-functions',
    'describe-task-definition',
    'describe-job-definitions',
    'batch-get-projects',
    'describe-configuration-settings',
    'describe-user-pool-client',
    'describe-launch-template-versions',
    'get-password-data',
    'get-console-output',
    'get-connections?',
    'generate-db-auth-token',
    'amplify (?:get|list)-\\S+',
    'apprunner describe-service',
    'appconfig kv',
    'container(?:app)? (?:show|list)',
    '(?:run|functions) (?:\\S+ )?describe',
    'instances describe',
    'project-info describe',
    'instance-templates describe',
    'apps spec',
    'apps get',
    'databases (?:get|connection|list)',
    'env ls',
  ].join('|')})(?=\\s|$)`,
);

function reveals(text: string, call: Invocation): boolean {
  return (revealing.test(text) && !asksOneField(call)) || (call.name === 'supabase' && /^status\b/.test(text));
}

const projectNames = new Set(
  'serverless sls vercel netlify sam amplify eb firebase wrangler supabase packer skaffold tilt okteto vagrant minikube '
    .concat('kind k3d multipass colima limactl')
    .split(' '),
);

/** The tools that run a project on this machine, told nothing that reaches further. */
function runsProject(text: string, { name }: Invocation): boolean {
  const reaches = /(?:^|\s)(?:rm|delete|destroy|deploy|--prod|remove|publish|push|reset)(?:\s|$)/.test(text);
  return projectNames.has(name) && projectTools.test(text) && !reaches;
}

/** `--query Runtime`: one field that is no setting of the service. */
function asksOneField({ args }: Invocation): boolean {
  const given = args.map(({ text }, index) =>
    /^--query$/.test(args[index - 1]?.text ?? '') ? text : /^--query=(.*)$/s.exec(text)?.[1],
  );
  const harmless =
    /^[\w.[\]*]*(?:Name|Arn|Id|Runtime|Version|Status|State|Handler|MemorySize|Timeout|LastModified|CodeSize)\]?$/;
  return given.some((field) => field !== undefined && harmless.test(field));
}

/** The words without the name of the service, which may read like a verb (`gcloud run`, `aws deploy`). */
function deeper(call: Invocation): string {
  const words = call.args.map(({ text }) => text);
  const at = words.findIndex((text) => !/^(?:alpha|beta|-.*)$/.test(text));
  return /^(?:aws|gcloud|az|oci)$/.test(call.name) ? words.slice(at + 1).join(' ') : words.join(' ');
}

/** Services elsewhere: asking them only reads, everything else changes something that is not here. */
function cloud(call: Invocation): readonly Finding[] {
  const text = wordsOf(call.args);
  if (harmlessConfig.test(`${call.name} ${text}`)) return asks(call);
  if (secrets.test(text) && !/get-caller-identity|list-secrets\b/.test(text))
    return danger(call, 'prints or makes credentials');
  if (reveals(text, call)) return danger(call, 'prints settings that hold secrets');
  if (runsProject(text, call)) return change(call, 'runs the project or a service of this machine');
  if (!questions.test(text) || acts.test(deeper(call))) return danger(call, 'changes what runs elsewhere');
  if (call.name === 'packer') return change(call, 'starts the plugins of the folder');
  return steering.test(text) ? change(call, 'is given a server or a file of choice') : asksTool(call);
}

export const clusterCodes: Readonly<Record<string, Code>> = { helm, kubectl, stack, terraform };

const kubectlTakes =
  '-n -l -o -f -c -L --namespace --context --cluster --user --selector --output --field-selector --tail --since --sort-by --container --template --dry-run --kubeconfig --server -s --as --token --image --replicas --timeout';
const kubectlReads =
  /^(?:get|describe|logs|top (?:pods?|nodes?|po|no)|version|explain|api-resources|api-versions|cluster-info$|events|auth (?:can-i|whoami)|config (?:current-context|get-contexts|get-clusters|get-users|view)|rollout (?:status|history)|options|plugin list|completion|whoami|projects?)(?: |$)/;

function kubectl(call: Invocation): readonly Finding[] {
  const options = parseOptions(call.args, kubectlTakes);
  const verb = wordsOf(options.operands);
  if (/\bsecrets?\b/i.test(verb) || has(options, '--raw', '--token', '--flatten') || /\btoken\b/.test(verb))
    return danger(call, 'prints secrets');
  if (has(options, '--server', '-s', '--kubeconfig', '--as')) return danger(call, 'talks to a cluster of choice');
  if (!kubectlReads.test(verb))
    return tries(verb, options)
      ? change(call, 'asks what would change')
      : danger(call, 'changes or enters the cluster');
  return has(options, '-w', '--watch', '--watch-only') || (/^logs\b/.test(verb) && has(options, '-f', '--follow'))
    ? change(call, 'runs until it is stopped')
    : asks(call);
}

/** What only shows what would change; `diff` and `kustomize` run programs for it. */
function tries(verb: string, options: Options): boolean {
  const dry =
    /^(?:apply|create|delete|run|expose)\b/.test(verb) &&
    valuesOf(options, '--dry-run').some(({ text }) => /^(?:client|server)$/.test(text));
  const addresses = [...options.operands, ...valuesOf(options, '-f', '-k')].some(({ text }) =>
    /:\/\/|^github\.com/.test(text),
  );
  return (dry || /^(?:diff|kustomize)\b/.test(verb)) && !addresses;
}

const helmReads =
  /^(?:list|ls|status|history|hist|get (?:notes|metadata)|show|inspect|search|version|env|lint|template|repo (?:list|ls)|dependency (?:list|ls)|dep (?:list|ls)|plugin (?:list|ls)|help)(?: |$)/;

function helm(call: Invocation): readonly Finding[] {
  const options = parseOptions(
    call.args,
    '-n -f -o --namespace --values --set --set-string --set-file --output --kube-context --version --revision --max --post-renderer --output-dir -s --show-only --kubeconfig --repo',
  );
  const verb = wordsOf(options.operands);
  if (has(options, '--post-renderer', '--kubeconfig', '--kube-apiserver', '--kube-token'))
    return danger(call, 'runs a program or talks to a cluster of choice');
  if (/^get (?:values|all|manifest|hooks)\b/.test(verb)) return danger(call, 'prints secrets');
  if (has(options, '--dependency-update')) return change(call, 'fetches charts');
  if (has(options, '--output-dir'))
    return [...valuesOf(options, '--output-dir').flatMap((arg) => writeTo(arg, call)), ...change(call, 'writes files')];
  if (/^(?:dependency|dep) (?:update|build|up)|^repo (?:add|update|index)|^package\b|^create\b|^pull\b/.test(verb))
    return options.operands.some((arg) => arg.dynamic)
      ? danger(call, 'fetches what is known only when it runs')
      : change(call, 'fetches or packs charts');
  return helmReads.test(verb) ? asks(call) : danger(call, 'changes the cluster');
}

/** What asks the state alone starts no provider, and providers are programs of the folder. */
function terraform(call: Invocation): readonly Finding[] {
  const verb = wordsOf(parseOptions(call.args).operands);
  if (
    call.args.some(({ text }) =>
      /^--?(?:destroy|auto-approve|from-module|plugin-dir|backend-config=.*:\/\/)/.test(text),
    )
  )
    return danger(call, 'changes what runs elsewhere');
  if (/^(?:output|show|state show)\b/.test(verb) && call.args.some(({ text }) => /^--?(?:json|raw)\b/.test(text)))
    return danger(call, 'prints secrets');
  if (asksState(verb, call)) return asks(call);
  if (/^fmt\b/.test(verb)) return change(call, 'formats files');
  return /^(?:show|state show|plan|validate|init|graph|providers|get|modules|test|workspace (?:new|select))\b/.test(
    verb,
  )
    ? change(call, 'runs the providers of the folder')
    : danger(call, 'changes what runs elsewhere');
}

function asksState(verb: string, call: Invocation): boolean {
  if (/^fmt\b/.test(verb))
    return (
      call.args.some(({ text }) => /^--?check$/.test(text)) && !call.args.some(({ text }) => /^--?write/.test(text))
    );
  if (verb === '') return call.args.length === 1 && /^--?version$/.test(call.args[0]?.text ?? '');
  return (
    /^(?:output|version|state list|workspace (?:list|show)|providers|metadata functions)(?: |$)/.test(verb) &&
    !/^providers (?:lock|mirror|schema)/.test(verb)
  );
}

function stack(call: Invocation): readonly Finding[] {
  const options: Options = parseOptions(call.args);
  const verb = options.operands[0]?.text ?? '';
  if (verb === 'version') return asks(call);
  return /^(?:plan|validate|fmt|init|version|graph|providers|show|preview|ls|list|synth|diff|doctor|stack|get|modules|test)$/.test(
    verb,
  ) &&
    !call.args.some(({ text }) => /^-(?:destroy|auto-approve)|show-secrets/.test(text)) &&
    !/\b(?:rm|remove)\b/.test(wordsOf(options.operands))
    ? change(call, 'runs providers')
    : danger(call, 'changes what runs elsewhere, or prints secrets');
}

export const containerCodes: Readonly<Record<string, Code>> = { compose, docker };

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
