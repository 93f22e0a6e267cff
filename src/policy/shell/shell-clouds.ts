import { change, danger } from './shell-findings.js';
import { asks, asksTool, wordsOf } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

const names = [
  'aws',
  'gcloud',
  'gsutil',
  'az',
  'doctl',
  'ibmcloud',
  'oci',
  'heroku',
  'fly',
  'flyctl',
  'vercel',
  'netlify',
  'wrangler',
  'firebase',
  'railway',
  'render',
  'supabase',
  'serverless',
  'sls',
  'eb',
  'sam',
  'amplify',
  'cf',
  'linode-cli',
  'hcloud',
  'scw',
  'linode',
  's3cmd',
  's5cmd',
  'mc',
  'b2',
  'azcopy',
  'surge',
  'now',
  'stripe',
  'twilio',
  'slack',
  'sentry-cli',
  'gh-pages',
  'planetscale',
  'pscale',
  'neonctl',
  'bq',
  'exo',
  'civo',
  'vultr-cli',
  'upctl',
  'aliyun',
  'tccli',
  'copilot-cli',
  'ecs-cli',
  'eksctl',
  'kops',
  'kubeadm',
  'rosa',
  'argocd',
  'flux',
  'istioctl',
  'nomad-pack',
  'waypoint',
  'boundary',
  'packer',
  'vagrant',
  'minikube',
  'kind',
  'k3d',
  'multipass',
  'limactl',
  'colima',
  'okteto',
  'skaffold',
  'tilt',
  'databricks',
  'snow',
  'auth0',
  'okta',
  'cloudflare',
  'fastly',
  'akamai',
  'rabbitmqadmin',
  'kafka-topics',
  'kafka-topics.sh',
];

export const cloudHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>(
  names.map((name): [string, Handler] => [name, cloud]),
);

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
