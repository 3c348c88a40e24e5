/** What people send to a run while it works: heard between two steps, each message once. */
import type { SteeringSource } from './engine.js';
import type { Reporter } from './reporter.js';
import type { SteerMessage, TranscriptMessage } from '../protocol/run.js';

const BEFORE = '<run_context>\nThe user sent this while you were at work. Go on with it in mind.\n</run_context>\n\n';

export class Steering {
  readonly #seen = new Set<string>();
  #waiting: SteerMessage[] = [];

  /** Messages that may have come before. */
  add(messages: readonly SteerMessage[]): void {
    for (const message of messages) {
      if (this.#seen.has(message.run)) continue;
      this.#seen.add(message.run);
      this.#waiting.push(message);
    }
  }

  /** For the engine: each time that it asks, the gateway is asked first. */
  heardBy(reporter: Pick<Reporter, 'hear'>): SteeringSource {
    return {
      hear: async () => {
        await reporter.hear();
        return this.#waiting.length > 0;
      },
      take: () => this.#take(),
    };
  }

  /** All that came since, as the model gets it. */
  #take(): TranscriptMessage[] {
    return this.#waiting
      .splice(0)
      .map(({ run, text }) => ({ role: 'user', text, steered: run, frame: { before: BEFORE, after: '' } }));
  }
}
