import { change, danger, writeTo } from './shell-findings.js';
import { has, parseOptions, valuesOf, type Options } from './shell-options.js';
import { asks, wordsOf } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const clusterHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['kubectl', kubectl],
  ['oc', kubectl],
  ['k3s', (call) => danger(call, 'changes or enters the cluster')],
  ['helm', helm],
  ['terraform', terraform],
  ['tofu', terraform],
  ['terragrunt', stack],
  ['pulumi', stack],
  ['cdk', stack],
]);

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
