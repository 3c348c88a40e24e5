import * as fc from '../../test/builders/properties.js';
import { makeEntry, makeFinishedRun } from '../../test/builders/archive-entries.js';
import type { RunParts } from '../../test/builders/archive-entries.js';
import { parseHead, parseRun, toRow } from './rows.js';

describe('a run as a row of the archive', () => {
  it('has what lists and limits need in columns', () => {
    const { head: _head, texts: _texts, ...columns } = toRow(makeEntry(makeFinishedRun('greeter-1')));
    expect(columns).toEqual({
      uid: 'uid-greeter-1',
      workspace: 'acme',
      box: 'acme-box',
      agent: 'greeter',
      agentUid: 'uid-greeter',
      name: 'greeter-1',
      sessionId: 's-greeter-1',
      createdAt: '2026-05-01T09:00:00.123Z',
      finishedAt: '2026-05-01T09:00:05.000Z',
      phase: 'done',
      resourceVersion: '1000',
      hasInput: true,
      claimed: false,
      waits: false,
    });
  });

  it('has a head without texts, and without what belongs to the cluster', () => {
    const run = makeFinishedRun('greeter-1', {
      metadata: { finalizers: ['boxwright.dev/fold'], deletionTimestamp: '2026-05-02T00:00:00Z' },
      status: { conditions: [] },
    });
    expect(parseHead(toRow(makeEntry(run)).head)).toEqual({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: {
        name: 'greeter-1',
        namespace: 'bw-acme-box',
        uid: 'uid-greeter-1',
        creationTimestamp: '2026-05-01T09:00:00Z',
      },
      spec: {
        agent: 'greeter',
        agentUid: 'uid-greeter',
        createdAt: '2026-05-01T09:00:00.123Z',
        sessionTitle: 'hello',
      },
      status: {
        phase: 'done',
        reason: 'Completed',
        finishedAt: '2026-05-01T09:00:05.000Z',
        usage: { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.000123' },
        usageFinal: true,
        provider: 'boxwright',
        model: 'scripted',
        transcript: { state: 'archived', chunks: 0, bytes: 0, messages: 2 },
      },
    });
  });

  it('keeps what a continued session needs: claim, marks and question', () => {
    const claim = {
      podUid: 'uid-pod',
      podName: 'greeter-1-x',
      at: '2026-05-01T09:00:01.000Z',
      gatewayPod: 'g',
      gatewayUid: 'uid-g',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    };
    const kept = {
      claim,
      untrusted: true,
      approvals: { always: ['shell'] },
      pending: { kind: 'question' as const, text: 'Blue?', callId: 'c1' },
    };
    const row = toRow(makeEntry(makeFinishedRun('greeter-1', { status: kept })));
    expect(parseHead(row.head).status).toMatchObject(kept);
    expect([row.claimed, row.waits]).toEqual([true, true]);
  });

  describe('counts the messages, since heads have no texts', () => {
    const input = { encoding: 'gzip' as const, bytes: 5000, sha256: 'ab' };
    const countOf = (status: NonNullable<RunParts['status']>, spec: object = {}) => {
      const run = makeFinishedRun('greeter-1', { status, spec });
      return parseHead(toRow(makeEntry(run)).head).status?.transcript?.messages;
    };
    const transcript = (state: 'full' | 'expired' | 'archived', chunks: number, messages?: number) => ({
      transcript: { state, chunks, bytes: 10, ...(messages === undefined ? {} : { messages }) },
    });

    it.each([
      ['as the gateway did', transcript('full', 2, 6), {}, 6],
      ['with the output where the agent said nothing else', transcript('full', 2, 1), {}, 2],
      ['as before the transcript was taken', transcript('archived', 0, 6), { message: undefined, input }, 6],
      ['as input and output without a transcript', transcript('expired', 0, 0), {}, 2],
      ['not where an earlier gateway did not', transcript('full', 2), {}, undefined],
      ['not where the input is known to earlier rows only', transcript('expired', 0, 0), { message: undefined, input }, undefined],
    ])('%s', (_what, status, spec, count) => {
      expect(countOf(status, spec)).toBe(count);
    }); // prettier-ignore
  });

  it('says that the transcript had expired before', () => {
    const run = makeFinishedRun('greeter-1', { status: { transcript: { state: 'expired', chunks: 0, bytes: 0 } } });
    expect(parseHead(toRow(makeEntry(run)).head).status?.transcript?.state).toBe('expired');
  });

  it('knows that the input was removed', () => {
    const { message: _message, ...spec } = makeFinishedRun('greeter-1').spec;
    const input = { encoding: 'gzip' as const, bytes: 5000, sha256: 'ab' };
    expect(toRow(makeEntry({ ...makeFinishedRun('greeter-1'), spec: { ...spec, input } })).hasInput).toBe(false);
  });

  it('keeps every text, also such as PostgreSQL refuses, in rows without such characters', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\u0000', '\ud800', '\udc00', '"', '\\', 'é', '😀', '\n') });
    fc.assert(
      fc.property(text, text, (message, output) => {
        const run = makeFinishedRun('greeter-1', { spec: { message }, status: { output } });
        const { head, texts } = toRow(makeEntry(run));
        const back = parseRun(head, texts);
        expect([back.spec.message, back.status?.output]).toEqual([message, output]);
        expect(`${head}${texts}`.isWellFormed()).toBe(true);
        expect(`${head}${texts}`).not.toContain('\u0000');
      }),
      { numRuns: 200 },
    );
  });
});
