/** Commands in the background of a run: started by `shell`, read by `shell_output`, ended by `shell_stop` or with the run. */
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';
import { runChild } from './child-process.js';
import type { ChildEnd } from './child-process.js';
import { OutputCapture } from './output-capture.js';
import type { CapturedOutput, OutputLog } from './output-capture.js';
import type { ShellStart } from './shell-session.js';
import { ToolFailure } from './tool-failure.js';

/** At the same time. */
const MAX_RUNNING = 16;
/** Those that ended longest ago are forgotten. */
const MAX_KNOWN = 64;

export interface BackgroundStart {
  start: ShellStart;
  home: string;
  /** The file for what is read at the given turn and does not fit into the answer. */
  log: (turn: number) => OutputLog;
}

/** What is new since the last look. */
export interface BackgroundLook extends CapturedOutput {
  background: string;
  /** Absent while it runs. */
  end?: ChildEnd;
}

interface Command {
  capture: OutputCapture;
  log: BackgroundStart['log'];
  turns: number;
  stop: AbortController;
  end?: ChildEnd;
  /** Resolves when it has ended. */
  ended: Promise<void>;
}

/** The background commands of one run, with names b1, b2, … */
export class BackgroundCommands {
  readonly #clock: Clock;
  readonly #commands = new Map<string, Command>();
  #started = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a command and returns its name. */
  start({ start, home, log }: BackgroundStart): string {
    const running = [...this.#commands.values()].filter(({ end }) => end === undefined);
    if (running.length >= MAX_RUNNING) {
      throw new ToolFailure(`${MAX_RUNNING} commands run in the background already; stop one with shell_stop.`);
    }
    const name = `b${++this.#started}`;
    const stop = new AbortController();
    const command: Command = { capture: new OutputCapture(log(1)), log, turns: 1, stop, ended: Promise.resolve() };
    command.ended = runChild({
      ...start,
      home,
      clock: this.#clock,
      signal: stop.signal,
      onOutput: (chunk) => command.capture.add(chunk),
    }).then(
      (end) => void (command.end = end),
      (error: NodeJS.ErrnoException) => {
        command.capture.add(Buffer.from(`the command could not be started (${error.code ?? 'unknown'})\n`));
        command.end = { exitCode: 127, endSignal: null, timedOut: false };
      },
    );
    this.#commands.set(name, command);
    this.#forgetOld();
    return name;
  }

  /** Waits for the end of a command, but not longer than so many milliseconds, and gives what is new. */
  async look(name: string, waitMs: number, signal: AbortSignal): Promise<BackgroundLook> {
    const command = this.#find(name);
    const waited = new AbortController();
    await Promise.race([command.ended, sleep(this.#clock, waitMs, AbortSignal.any([signal, waited.signal]))]);
    waited.abort();
    return this.#look(name, command);
  }

  /** Ends a command with all its processes, and gives what is new. */
  async stop(name: string): Promise<BackgroundLook> {
    const command = this.#find(name);
    command.stop.abort();
    await command.ended;
    return this.#look(name, command);
  }

  /** Ends all. */
  async close(): Promise<void> {
    const commands = [...this.#commands.values()];
    for (const { stop } of commands) stop.abort();
    await Promise.all(commands.map(({ ended }) => ended));
  }

  #look(name: string, command: Command): BackgroundLook {
    const output = command.capture.finish();
    command.turns += 1;
    command.capture = new OutputCapture(command.log(command.turns));
    return { background: name, ...(command.end === undefined ? {} : { end: command.end }), ...output };
  }

  #find(name: string): Command {
    const command = this.#commands.get(name);
    if (command !== undefined) return command;
    const names = [...this.#commands.keys()];
    const known = names.length === 0 ? 'none was started in this run' : `there are ${names.join(', ')}`;
    throw new ToolFailure(`There is no background command ${name}: ${known}.`);
  }

  #forgetOld(): void {
    for (const [name, { end }] of this.#commands) {
      if (this.#commands.size <= MAX_KNOWN) return;
      if (end !== undefined) this.#commands.delete(name);
    }
  }
}
