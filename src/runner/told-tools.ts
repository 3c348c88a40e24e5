/** Which tools the model is told of now, and how large that is. Pure. */
import { z } from 'zod';
import type { EngineInput, EngineTool } from './engine.js';

/** As the SDK takes it: what was found stands behind the others, which stay as they were. */
export function toldOf(input: EngineInput): { activeTools?: string[]; toolOrder?: string[] } {
  if (input.found === undefined) return {};
  const names = toldTools(input).map(({ name }) => name);
  return { activeTools: names, toolOrder: names };
}

/** All but those on demand, and then those of them that were found, in the order in which they were. */
export function toldTools({ tools, found }: EngineInput): readonly EngineTool[] {
  if (found === undefined) return tools;
  const byName = new Map(tools.map((definition) => [definition.name, definition]));
  const later = found().flatMap((name) => byName.get(name) ?? []);
  return [...tools.filter(({ isOnDemand }) => isOnDemand !== true), ...later];
}

/** Of the JSON in which a request has it, about. */
export function bytesOfTool({ name, description, input, schema }: EngineTool): number {
  return Buffer.byteLength(
    JSON.stringify({ name, description, schema: schema ?? z.toJSONSchema(input, { io: 'input' }) }),
  );
}
