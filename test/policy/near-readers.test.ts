import { expect, test } from 'vitest';
import { riskOf } from './judging.js';

/** Beside what only reads: the same programs with one word more. */
const more: Readonly<Record<string, readonly string[]>> = {
  dangerous: [
    "tmux ls ';' new-session -d x", 'tmux ls \\; run x', "rpm -q -E '%(id)'", "rpm -qE '%(id)'", 'rpm -qa --pipe x', 'apt list -oDir::Bin=x', 'pip list --python ./x', 'gh api graphql -f query=x', 'gh api --method=DELETE repos/o/r', 'gh auth status -t', 'kubectl get pods --kubeconfig=x', 'kubectl get secret x',
    'kubectl config view --raw', 'terraform output -json', 'helm template . --post-renderer ./x', 'docker inspect -f "{{.Config.Env}}" x', 'docker -H tcp://x:1 ps', 'aws secretsmanager get-secret-value --secret-id x', 'aws s3 ls "$(cat x)"', "exiftool -If 'system(1)' a.jpg", "node -p \"require('./credentials.json').key\"", "python3 -c 'print(f\"{open(0).read()}\")'",
    "python3 -c 'print(\"{0.modules[os].environ}\".format(__import__(\"sys\")))'", 'env | grep ^GO', 'env | grep -i ^ci', 'openssl x509 -in a.pem -signkey k.pem', 'go list -toolexec ./x ./...', 'cargo tree --config x', 'npm pkg set scripts.test=x', "rg -uu 'API_KEY'", 'sysctl x=1', 'getent shadow', 'watch -x rm -r x', 'perl -ne "print; system(1)" a',
    "find . -name '*.json' -exec sed -i s/a/b/ {} +", "find . -name '*.yml' | xargs sed -i s/a/b/", 'git ls-files | xargs sed -i s/a/b/', 'find / -name "*.ts" | xargs sed -i s/a/b/', 'git symbolic-ref HEAD refs/heads/x', 'echo "rm -r x" > x.sh; sh x.sh', 'echo x > t.py; python3 t.py',
  ],
  mutating: [
    "exiftool -TagsFromFile a.jpg b.jpg", 'uudecode x', "zless '+!id' x", 'in2csv --write-sheets - a.xlsx', 'gh pr view 1 --web', 'kubectl get pods -w', 'kubectl logs -f x', 'docker logs -f x', 'docker stats', 'aws s3 ls --endpoint-url http://x.example', 'docker inspect x', 'terraform show', 'npx tsc --version',
    "python3 -c 'import json; print(json.dumps(1))'", "node -p 'Math[\"max\"]; const k = \"con\"; Math.max[k]'", 'poetry version patch', 'npm audit fix', 'xmllint --noent a.xml', 'helm get values x', 'cmake -E touch x', 'sed -i s/a/b/ a.ts', "perl -pi -e 's/a/b/' a.ts", 'echo ls > x.sh; sh x.sh', 'npm pkg set version=1',
  ],
};

test('a word more than reading is never called reading', () => {
  expect((more['dangerous'] ?? []).filter((line) => riskOf(line) !== 'dangerous')).toEqual([]);
  expect((more['mutating'] ?? []).filter((line) => riskOf(line) === 'read-only')).toEqual([]);
});
