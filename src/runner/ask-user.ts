/** `ask_user`: the question ends the run, and the answer is the result of the call in the next run of the session. */
import { z } from 'zod';
import type { EngineTool } from './engine.js';

const Input = z.object({
  question: z.string().min(1).max(4000).describe('The question, with everything that is needed to answer it.'),
  choices: z.array(z.string().min(1).max(200)).min(1).max(20).optional().describe('Answers to choose from, if any.'),
});

/** Every agent has it: somebody who cannot ask guesses. */
export const askUser: EngineTool = {
  name: 'ask_user',
  family: 'interact',
  description:
    'Asks the person a question and ends this run; the answer comes later as the result of this call. Use it only when you cannot go on without a decision or information that nobody but the person has.',
  input: Input,
  execute: (input) => {
    const { question, choices } = Input.parse(input);
    const pause = { kind: 'question' as const, text: question, ...(choices === undefined ? {} : { choices }) };
    return Promise.resolve({ isError: false, result: {}, pause });
  },
};
