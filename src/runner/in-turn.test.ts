import { inTurn } from './in-turn.js';

test('one call at a time, in the order in which they were asked for, also after one that failed', async () => {
  const sent: string[] = [];
  const ends: PromiseWithResolvers<Response>[] = [];
  const send = inTurn((url) => {
    sent.push(url as string);
    const end = Promise.withResolvers<Response>();
    ends.push(end);
    return end.promise;
  });
  const calls = ['a', 'b', 'c'].map((url) => send(url));
  await Promise.resolve();
  expect(sent).toEqual(['a']);
  ends[0]?.reject(new Error('broken'));
  await expect(calls[0]).rejects.toThrow('broken');
  await new Promise(setImmediate);
  expect(sent).toEqual(['a', 'b']);
  ends[1]?.resolve(new Response('b'));
  await calls[1];
  await new Promise(setImmediate);
  expect(sent).toEqual(['a', 'b', 'c']);
});

test('a call that is stopped while it waits is not made', async () => {
  const sent: string[] = [];
  const end = Promise.withResolvers<Response>();
  const send = inTurn((url) => {
    sent.push(url as string);
    return end.promise;
  });
  const first = send('a');
  const stop = new AbortController();
  const second = send('b', { signal: stop.signal });
  stop.abort();
  end.resolve(new Response(''));
  await first;
  await expect(second).rejects.toThrow('abort');
  expect(sent).toEqual(['a']);
});
