import { isInside } from '../paths.js';
import { change, danger, pathsOf } from './shell-findings.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const serviceHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...['psql', 'mysql', 'mariadb', 'sqlite3', 'sqlite', 'duckdb', 'redis-cli', 'valkey-cli', 'mongo', 'mongosh', 'cqlsh', 'clickhouse-client', 'clickhouse', 'sqlcmd', 'usql', 'cockroach', 'influx', 'etcdctl', 'pgcli', 'mycli', 'litecli', 'bq', 'snowsql', 'turso', 'neo4j-client', 'cypher-shell'].map((name): [string, Handler] => [name, database]),
  ...['dropdb', 'dropuser', 'createuser', 'pg_resetwal', 'mysqladmin', 'pg_dropcluster', 'pg_ctl', 'mongodump', 'mongorestore', 'pg_restore', 'initdb', 'pg_dumpall'].map((name): [string, Handler] => [name, (call) => danger(call, 'changes or copies whole databases')]),
  ['docker', docker], ['podman', docker], ['nerdctl', docker], ['docker-compose', compose], ['podman-compose', compose], ['kubectl', kubectl], ['oc', kubectl], ['helm', cloud], ['terraform', terraform], ['tofu', terraform], ['terragrunt', terraform], ['pulumi', terraform], ['cdk', terraform], ['ansible', (call) => danger(call, 'acts on other machines')], ['ansible-playbook', (call) => danger(call, 'acts on other machines')], ['vagrant', cloud], ['minikube', cloud], ['kind', cloud],
  ...['aws', 'gcloud', 'gsutil', 'az', 'doctl', 'ibmcloud', 'oci', 'heroku', 'fly', 'flyctl', 'vercel', 'netlify', 'wrangler', 'firebase', 'railway', 'render', 'supabase', 'serverless', 'sls', 'eb', 'sam', 'amplify', 'cf', 'linode-cli', 'hcloud', 'scw', 'linode', 's3cmd', 's5cmd', 'mc', 'b2', 'azcopy', 'surge', 'now', 'stripe', 'twilio', 'slack', 'sentry-cli', 'gh-pages', 'planetscale', 'pscale', 'neonctl'].map((name): [string, Handler] => [name, cloud]),
  ['gh', github], ['glab', github], ['hub', github],
  ...['security', 'pass', 'gopass', 'op', 'bw', 'rbw', 'lpass', 'vault', 'secret-tool', 'keyctl', 'keyring', 'kwallet-query', 'chamber', 'doppler', 'infisical', 'sops', 'age', 'rage', 'git-crypt', 'ansible-vault', 'berglas', 'teller', 'envchain', 'aws-vault', 'saml2aws', 'bitwarden', 'dashlane', 'keepassxc-cli', 'docker-credential-desktop', 'kinit', 'klist'].map((name): [string, Handler] => [name, (call) => danger(call, 'reaches a store of secrets')]),
  ['gpg', gpg], ['gpg2', gpg], ['gpgconf', (call) => danger(call, 'changes settings of keys')],
  ...['agent', 'claude', 'codex', 'gemini', 'cursor-agent', 'opencode', 'aider', 'goose', 'amp', 'qwen', 'crush', 'copilot', 'q', 'droid', 'cline', 'auggie', 'sgpt', 'llm', 'fabric', 'interpreter', 'plandex', 'kiro', 'openhands'].map((name): [string, Handler] => [name, (call) => danger(call, 'starts an agent, with rights of its own')]),
]);

function textOf(call: Invocation): string {
  return [call.place.input, ...call.args.map(({ text }) => text)].join(' ');
}

const destructive = /\b(?:drop|truncate|delete\s+from|alter|update\s+\S+\s+set|revoke|grant|vacuum\s+into|attach|create\s+(?:or\s+replace\s+)?(?:function|extension|user|role|trigger)|copy\b[^;]*\b(?:program|to|from)\b|load_extension|load_file|into\s+(?:out|dump)file|load\s+data|writefile|readfile|edit|fts3_tokenizer|replace\s+into|merge\s+into|detach|optimize|system|kill|set\s+global|do\s+\$\$|dblink|pg_read_file|pg_ls_dir|lo_(?:import|export)|xp_cmdshell|shutdown)\b/i;
const redis = /\b(?:flushall|flushdb|del|unlink|shutdown|config\s+(?:set|rewrite)|eval|evalsha|fcall|script|function|debug|module|slaveof|replicaof|save|bgsave|bgrewriteaof|rename|restore|migrate|swapdb|acl|failover|cluster|client\s+kill|monitor|hdel|expire|getdel)\b/i;
const mongo = /drop\w*\s*\(|delete(?:One|Many)\s*\(|remove\s*\(|update\w*\s*\(|replaceOne|insert\w*\s*\(|\$where|mapReduce|shutdown|runCommand|adminCommand|eval\s*\(|load\s*\(|renameCollection|bulkWrite|findOneAnd/;
const dotCommands = /(?:^|[\s;'"])\.(?:shell|system|import|output|once|load|save|backup|restore|read|open|excel|log|clone|cd|archive|dump|recover|www)\b|\\!|\\copy\b|\\o\b|\\g\s*[|/]|\\w\b|\\i\b|\\\|/;

function database(call: Invocation): readonly Finding[] {
  const text = textOf(call);
  const language = /^(?:redis|valkey)/.test(call.name) ? redis : call.name.startsWith('mongo') ? mongo : destructive;
  if (language.test(text) || (call.name === 'etcdctl' && /\b(?:del|put)\b/.test(text))) return danger(call, 'changes or destroys data');
  if (dotCommands.test(text)) return danger(call, 'runs a command or writes a file from the database program');
  if (call.args.some((arg) => arg.dynamic) || call.args.some(({ text: word }) => /^-(?:cmd|init)$/.test(word))) return danger(call, 'is given words that are known only when it runs');
  return change(call, 'talks to a database');
}

const containerReads = /^(?:ps|images|image ls|image inspect|image history|container ls|container list|volume ls|network ls|logs|inspect|version|info|stats|top|port|history|diff|search|context ls|system df|events|compose (?:ps|logs|config|ls|images|top|version))\b/;

function docker(call: Invocation): readonly Finding[] {
  const text = call.args.map((arg) => arg.text).join(' ');
  if (/^(?:-H|--host|--context|-c)\b/.test(text)) return danger(call, 'controls another machine');
  if (/^compose\b/.test(text)) return compose({ ...call, args: call.args.slice(1) });
  if (containerReads.test(text)) return change(call, 'asks the container service');
  if (/^(?:build|buildx build|pull|tag|create|start|stop|restart|pause|unpause|wait|buildx (?:ls|inspect)|network create|volume create)\b/.test(text)) return mounted(call) ?? change(call, 'changes containers');
  return danger(call, 'runs, removes, enters or publishes containers');
}

function mounted(call: Invocation): readonly Finding[] | null {
  const outside = call.args.some(({ text }) => /^(?:--privileged|--cap-add|--device|--pid|--net(?:work)?=host|--security-opt)/.test(text) || /^\/[^:]*:/.test(text) && !pathsOf(text.split(':')[0] ?? '', call.scan).every((path) => isInside(path, call.scan.context.workspace)));
  return outside ? danger(call, 'gives a container the machine') : null;
}

function compose(call: Invocation): readonly Finding[] {
  const text = call.args.map((arg) => arg.text).join(' ');
  return /\b(?:down\b.*(?:-v|--volumes|--rmi)|rm\b|exec\b|run\b|kill\b|push\b|cp\b)/.test(text) ? danger(call, 'removes, enters or publishes containers') : change(call, 'changes containers');
}

function kubectl(call: Invocation): readonly Finding[] {
  const text = call.args.map((arg) => arg.text).join(' ');
  if (/\bsecrets?\b|--raw|--token|\bconfig view\b/.test(text)) return danger(call, 'prints secrets');
  return /^(?:-n \S+ |--namespace[= ]\S+ |--context[= ]\S+ )*(?:get|describe|logs|top|version|explain|api-resources|api-versions|cluster-info|config (?:current-context|get-contexts)|diff)\b/.test(text) && !/\bget-contexts --kubeconfig/.test(text) ? change(call, 'asks the cluster') : danger(call, 'changes or enters the cluster');
}

function terraform(call: Invocation): readonly Finding[] {
  const verb = call.args.map((arg) => arg.text).find((text) => !text.startsWith('-')) ?? '';
  return /^(?:plan|validate|fmt|init|version|graph|providers|show|preview|ls|list|synth|diff|doctor|stack|get|modules|test)$/.test(verb) && !call.args.some(({ text }) => /^-(?:destroy|auto-approve)|show-secrets/.test(text)) ? change(call, 'runs providers') : danger(call, 'changes what runs elsewhere, or prints secrets');
}

/** Services elsewhere: asking is a use of the network, everything else changes something that is not here. */
function cloud(call: Invocation): readonly Finding[] {
  const text = call.args.map((arg) => arg.text).join(' ');
  if (/secret|token|password|credential|get-parameter|get-login|kms|print-|env (?:pull|get)|config(?:s)?(?::get| get| list|:export)|auth|iam create|session-token|assume-role|keys? (?:list|show)|connection-string|ssm/i.test(text) && !/get-caller-identity|auth list$/.test(text)) return danger(call, 'prints or makes credentials');
  const asks = /(?:^|\s)(?:ls|list|describe(?:-[\w-]+)?|get(?:-[\w-]+)?|show|status|info|whoami|version|--version|--help|help|list-[\w-]+|logs|history|search|lint|template|repo list|sts get-caller-identity|projects|ps|apps|regions|account show|head-[\w-]+|init|dev|emulators:start|serve)(?:\s|$)/;
  const acts = /(?:^|\s)(?:rm|rb|mb|cp|mv|sync|put\S*|create\S*|delete\S*|destroy\S*|remove\S*|update\S*|run\S*|start|stop\S*|terminate\S*|deploy\S*|apply|set\S*|exec|ssh|publish|push|upload|install|upgrade|uninstall|rollback|scale|restart|invoke|send\S*|attach\S*|modify\S*|purge|reset|import|restore|link|login|logout|promote|alias|add\S*|terminate|call|api|rsync|cat|download|sql|eval|console|shell|proxy|presign|signurl|enable\S*|disable\S*|register\S*|revoke\S*|tag\S*)(?:\s|$)/;
  return asks.test(text) && !acts.test(text) ? change(call, 'asks a service') : danger(call, 'changes what runs elsewhere');
}

function github(call: Invocation): readonly Finding[] {
  const words = call.args.map((arg) => arg.text);
  const [area = '', verb = ''] = words.filter((text) => !text.startsWith('-'));
  const asks = words[0] === '--version' || (githubAreas[area] ?? githubVerbs).test(`${area} ${verb}`);
  return asks && !words.some((text) => githubActs[area]?.test(text) === true) ? change(call, 'asks a service') : danger(call, 'changes what others see, or prints or changes keys');
}

const githubVerbs = /^\S+ (?:list|view|status|diff|checks|watch|show)$|^pr checkout$|^repo clone$|^run download$/;
const anything = /^/;
const listing = / (?:list|get)$/;
/** What may follow an area of gh that has verbs of its own. */
const githubAreas: Readonly<Record<string, RegExp>> = {
  version: anything, help: anything, status: anything, search: anything, api: anything, auth: / status$/,
  secret: listing, 'ssh-key': listing, 'gpg-key': listing, extension: listing, alias: listing, config: listing,
};
/** Words that turn asking into more. */
const githubActs: Readonly<Record<string, RegExp>> = { auth: /^(?:-t|--show-token)$/, api: /^(?:-X|--method|-f|-F|--field|--raw-field|--input|-H|--hostname)/ };

function gpg(call: Invocation): readonly Finding[] {
  const words = call.args.map((arg) => arg.text);
  if (words.every((text) => /^(?:--version|--list-keys|-k|--list-public-keys|--fingerprint|--with-colons|--help)$/.test(text)) && words.length > 0) return change(call, 'lists public keys');
  return words.some((text) => text === '--verify') ? change(call, 'checks a signature') : danger(call, 'uses keys');
}
