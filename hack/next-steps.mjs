// Prints what to do after `make up`, with lines that are ready to paste. usage: next-steps.mjs FACTS_FILE KUBECTL
import { readFileSync } from 'node:fs';

const [factsFile, kubectl] = process.argv.slice(2);
const { kubeconfig, baseUrl, apiKey, triggerUrl } = JSON.parse(readFileSync(factsFile, 'utf8'));
const mcp = `${baseUrl}/api/mcp/account`;

console.log(`
What next (these facts are also in ${factsFile}):

The app       ${baseUrl}/   (sign in with the API key)
MCP endpoint  ${mcp}
API key       ${apiKey}

Claude Code:
  claude mcp add --transport http boxwright ${mcp} --header "Authorization: Bearer ${apiKey}"

Cursor (~/.cursor/mcp.json):
  {"mcpServers":{"boxwright":{"url":"${mcp}","headers":{"Authorization":"Bearer ${apiKey}"}}}}

VS Code (.vscode/mcp.json):
  {"servers":{"boxwright":{"type":"http","url":"${mcp}","headers":{"Authorization":"Bearer ${apiKey}"}}}}

curl:
  curl -s ${mcp} -H "Authorization: Bearer ${apiKey}" -H 'Content-Type: application/json' \\
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"agentId":"quickstart.greeter","message":"Hello"}}}'

The trigger's URL (a secret: whoever has it can start the agent):
  curl -X POST -H 'Content-Type: application/json' -d '{"hello":"world"}' ${triggerUrl}

kubectl and logs:
  export KUBECONFIG=${kubeconfig}; alias kubectl=${kubectl}
  kubectl get agentruns -A
  kubectl -n boxwright-system logs deploy/boxwright-controller
  printf 'apiVersion: boxwright.dev/v1alpha1\\nkind: AgentRun\\nmetadata: {generateName: greeter-, namespace: bw-quickstart}\\nspec: {agent: greeter, message: Hello}\\n' | kubectl create -f -

Remove everything: make down`);
