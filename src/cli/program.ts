/**
 * The command line: what each command calls and prints. It owns no state: everything it says was asked in that moment.
 * Exit codes: 0 done; 1 the call failed or the followed run ended in error or cancelled; 2 the command was written wrongly.
 */
import { Command, CommanderError, Option } from 'commander';
import { CommandError } from './mcp-client.js';
import type { Endpoint, ToolClient } from './mcp-client.js';
import { hasEnded, news, plain, structured, summary, why } from './run-view.js';
import type { Format, RunAnswer } from './run-view.js';

export interface CliDeps {
  env: NodeJS.ProcessEnv;
  version: string;
  out: (text: string) => void;
  err: (text: string) => void;
  connect: (endpoint: Endpoint) => ToolClient;
}

interface Options {
  url?: string;
  key?: string;
  output: Format;
}

/** How long one question of a follower waits for the end of its run; the answer shows what happened meanwhile. */
const FOLLOW_SECONDS = 2;

/** Examples of the help, without the name of the program: tests run each of them. */
export const EXAMPLES = {
  run: 'run quickstart.greeter "Hello" -f',
  logs: 'logs quickstart.greeter greeter-1 -f',
  cancel: 'cancel quickstart.greeter greeter-1',
  answer: 'answer quickstart.greeter greeter-1 "The blue one"',
  approve: 'approve quickstart.greeter greeter-1 --deny --reason "not today"',
  why: 'why quickstart.greeter greeter-1',
} as const;

/** Runs one command line; resolves with its exit code. */
export async function runCli(args: readonly string[], deps: CliDeps): Promise<number> {
  try {
    await createProgram(deps).parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof RunFailed) return 1;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!(error instanceof CommandError)) throw error;
    deps.err(`error: ${plain(error.message)}\n`);
    return 1;
  }
}

/** What was followed did not end well; the summary has said so. */
class RunFailed extends Error {}

function createProgram(deps: CliDeps): Command {
  const program = new Command('kubectl boxwright')
    .description('Runs agents of Boxwright and tells what they do.')
    .version(deps.version)
    .option('--url <url>', 'public URL of the installation (BOXWRIGHT_URL)')
    .option('--key <key>', 'API key; better in BOXWRIGHT_API_KEY, where other users of this machine cannot see it')
    .addOption(
      new Option('-o, --output <format>', 'what is printed').choices(['table', 'json', 'yaml']).default('table'),
    )
    .configureOutput({ writeOut: deps.out, writeErr: deps.err })
    .exitOverride();
  const context: Context = { deps, options: () => program.opts<Options>() };
  addStartingCommands(program, context);
  addAnsweringCommands(program, context);
  return program;
}

interface Context {
  deps: CliDeps;
  options: () => Options;
}

function command(program: Command, name: keyof typeof EXAMPLES, description: string): Command {
  return program
    .command(name)
    .description(description)
    .addHelpText('after', `\nExample:\n  kubectl boxwright ${EXAMPLES[name]}`)
    .argument('<agent>', 'agent id: BOX.AGENT');
}

function addStartingCommands(program: Command, context: Context): void {
  command(program, 'run', 'Sends a message to an agent, which starts a run.')
    .argument('<message>', 'what to tell the agent')
    .option('-f, --follow', 'shows what the run does until it has ended; exits with 1 when it did not end well')
    .option('--session <id>', 'continues this conversation')
    .action(async (agentId: string, message: string, { follow, session }: { follow?: true; session?: string }) => {
      await send(context, { agentId, message, sessionId: session }, follow === true);
    });
  command(program, 'logs', 'Shows the tool calls, the output and the cost of a run.')
    .argument('<run>', 'run id')
    .option('-f, --follow', 'goes on until the run has ended; exits with 1 when it did not end well')
    .action(async (agentId: string, runId: string, { follow }: { follow?: true }) => {
      await show(context, { agentId, runId }, follow === true);
    });
  command(program, 'why', 'Says why a run stands as it does: reason, cause and next step.')
    .argument('<run>', 'run id')
    .action(async (agentId: string, runId: string) => {
      const said = why(await client(context).call<RunAnswer>('get_run', { agentId, runId }));
      const lines = [`${said.reason}: ${said.cause}`, `Next step: ${said.nextStep}`, said.detail];
      print(
        context,
        said,
        lines
          .filter((line) => line !== '')
          .map((line) => `${plain(line)}\n`)
          .join(''),
      );
    });
}

function addAnsweringCommands(program: Command, context: Context): void {
  command(program, 'cancel', 'Stops a run that works or waits.')
    .argument('<run>', 'run id')
    .action(async (agentId: string, runId: string) => {
      const answer = await client(context).call<{ status: string }>('cancel_run', { agentId, runId });
      print(context, answer, `${plain(runId)}: ${plain(answer.status)}\n`);
    });
  command(program, 'answer', 'Answers the question of a run: its session goes on in a new run.')
    .argument('<run>', 'run id')
    .argument('<text>', 'the answer')
    .option('-f, --follow', 'shows what the new run does until it has ended')
    .action(async (agentId: string, runId: string, message: string, { follow }: { follow?: true }) => {
      const sessionId = await sessionThatWaits(context, { agentId, runId }, 'question');
      await send(context, { agentId, message, sessionId }, follow === true);
    });
  command(program, 'approve', 'Approves or denies the tool call that a run waits for.')
    .argument('<run>', 'run id')
    .option('--always', 'approves later calls of this tool in the session too')
    .addOption(new Option('--deny', 'denies the call').conflicts('always'))
    .option('--reason <text>', 'what the agent is told about a denial')
    .option('-f, --follow', 'shows what the new run does until it has ended')
    .action(async (agentId: string, runId: string, said: Decision, self: Command) => {
      if (said.reason !== undefined && said.deny !== true) self.error('error: --reason belongs to --deny');
      const sessionId = await sessionThatWaits(context, { agentId, runId }, 'approval');
      await send(context, { agentId, message: decisionText(said), sessionId }, said.follow === true);
    });
}

interface Decision {
  always?: true;
  deny?: true;
  reason?: string;
  follow?: true;
}

function decisionText({ always, deny, reason }: Decision): string {
  if (deny === true) return reason === undefined ? 'deny' : `deny: ${reason}`;
  return always === true ? 'approve always' : 'approve';
}

interface RunRef {
  agentId: string;
  runId: string;
}

async function sessionThatWaits(context: Context, ref: RunRef, kind: 'question' | 'approval'): Promise<string> {
  const { pending, sessionId } = await client(context).call<RunAnswer>('get_run', ref);
  if (pending?.kind === kind) return sessionId;
  if (pending === null) throw new CommandError(`${ref.runId} waits for nothing, or was answered already`);
  throw new CommandError(
    `${ref.runId} waits for an ${kind === 'question' ? 'approval: use approve' : 'answer: use answer'}`,
  );
}

interface Message {
  agentId: string;
  message: string;
  sessionId: string | undefined;
}

async function send(context: Context, message: Message, follow: boolean): Promise<void> {
  const started = await client(context).call<{ runId: string }>('send_message', { ...message, waitSeconds: 0 });
  if (follow) await show(context, { agentId: message.agentId, runId: started.runId }, true);
  else print(context, started, `${plain(started.runId)}\n`);
}

/** JSON and YAML are one document: with follow it is that of the end. */
async function show(context: Context, ref: RunRef, follow: boolean): Promise<void> {
  const tools = client(context);
  const isTable = context.options().output === 'table';
  let before: RunAnswer | undefined;
  for (;;) {
    const wait = follow && before !== undefined ? FOLLOW_SECONDS : 0;
    const run = await tools.call<RunAnswer>('get_run', { ...ref, includeToolCalls: true, waitSeconds: wait });
    if (isTable) context.deps.out(news(before, run));
    if (!follow || hasEnded(run)) {
      print(context, run, summary(run));
      if (follow && run.status !== 'done') throw new RunFailed();
      return;
    }
    before = run;
  }
}

function print({ deps, options }: Context, value: unknown, table: string): void {
  const { output } = options();
  deps.out(output === 'table' ? table : structured(value, output));
}

function client({ deps, options }: Context): ToolClient {
  const { url = deps.env.BOXWRIGHT_URL, key = deps.env.BOXWRIGHT_API_KEY } = options();
  if (url === undefined || !/^https?:\/\//.test(url)) {
    throw new CommanderError(2, 'boxwright.url', said(deps, 'give the public URL with --url or BOXWRIGHT_URL'));
  }
  if (key === undefined || key === '') {
    throw new CommanderError(2, 'boxwright.key', said(deps, 'give an API key with BOXWRIGHT_API_KEY or --key'));
  }
  return deps.connect({ url, key: key.trim(), userAgent: `kubectl-boxwright/${deps.version}` });
}

function said(deps: CliDeps, text: string): string {
  deps.err(`error: ${text}\n`);
  return text;
}
