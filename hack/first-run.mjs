// Fires the quickstart trigger by its real URL, waits for the run over MCP, prints its output, and writes the facts
// that scripts need into a file that only its owner can read.
// usage: first-run.mjs BASE_URL KUBECTL FACTS_FILE   (KUBECONFIG in the environment)
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const [baseUrl, kubectl, factsFile] = process.argv.slice(2);
const agentId = 'quickstart.greeter';

const secret = execFileSync(kubectl, [
  '-n',
  'bw-ws-quickstart',
  'get',
  'secret',
  'quickstart',
  '-o',
  'jsonpath={.data.key}',
]);
const apiKey = Buffer.from(secret.toString(), 'base64').toString();

/** One MCP tool call; throws with the tool's own message when it fails. */
async function callTool(name, args) {
  const response = await fetch(`${baseUrl}/api/mcp/account`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    signal: AbortSignal.timeout(180_000),
  });
  if (!response.ok) throw new Error(`${name}: HTTP ${response.status} ${await response.text()}`);
  const { result, error } = await response.json();
  if (error !== undefined) throw new Error(`${name}: ${error.message}`);
  if (result.isError === true) throw new Error(`${name}: ${JSON.parse(result.content[0].text).error}`);
  return result.structuredContent;
}

const { triggers } = await callTool('list_triggers', { agentId });
const { url: triggerUrl } = triggers.find((trigger) => trigger.slug === 'hello');
mkdirSync(dirname(factsFile), { recursive: true, mode: 0o700 });
const facts = { kubeconfig: process.env.KUBECONFIG, baseUrl, apiKey, triggerUrl };
writeFileSync(factsFile, `${JSON.stringify(facts, null, 2)}\n`, { mode: 0o600 });

const started = Date.now();
const fired = await fetch(triggerUrl, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ hello: 'from make up' }),
});
if (fired.status !== 202) throw new Error(`the trigger answered ${fired.status}: ${await fired.text()}`);
const { runId } = await fired.json();
console.log(`POST <trigger URL> -> 202 in ${Date.now() - started} ms, run ${runId}`);

let run;
do run = await callTool('get_run', { agentId, runId, waitSeconds: 120 });
while (run.status === 'running');
console.log(
  `run ${run.status} after ${((Date.now() - started) / 1000).toFixed(1)} s, ${run.totalTokens} tokens, cost ${run.costUsd} USD`,
);
console.log(`output: ${run.output}\n`);
if (run.status !== 'done') throw new Error(`the run ended ${run.status}: ${run.error}`);
