/** How often the event loop served others while a piece of work went on: what tells work in steps from work at one go. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isWorking = true;
  const count = () => {
    turns += 1;
    if (isWorking) setImmediate(count);
  };
  setImmediate(count);
  try {
    await work();
    return turns;
  } finally {
    isWorking = false;
  }
}
