import { CallOrder } from './call-order.js';

/** Calls that end when they are told to, and what has begun. */
function world() {
  const order = new CallOrder();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const call = (name: string, isParallel: boolean) =>
    order.run(isParallel, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await settled();
  };
  return { begun, call, end };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('calls that read stand beside each other, a writing one alone and in its place', async () => {
  const { begun, call, end } = world();
  void call('read 1', true);
  void call('read 2', true);
  void call('write 1', false);
  void call('read 3', true);
  void call('write 2', false);
  await settled();
  expect(begun).toEqual(['read 1', 'read 2']);
  await end('read 2');
  expect(begun).toHaveLength(2);
  await end('read 1');
  expect(begun.slice(2)).toEqual(['write 1']);
  await end('write 1');
  expect(begun.slice(3)).toEqual(['read 3']);
  await end('read 3');
  expect(begun.slice(4)).toEqual(['write 2']);
});

test('one that fails holds nothing up', async () => {
  const order = new CallOrder();
  const failing = () => Promise.reject(new Error('no'));
  await expect(order.run(true, failing)).rejects.toThrow('no');
  await expect(order.run(false, failing)).rejects.toThrow('no');
  await expect(order.run(true, () => Promise.resolve('done'))).resolves.toBe('done');
});
