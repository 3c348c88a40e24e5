/** Stores events as objects of events.k8s.io/v1, which `kubectl describe` and `kubectl get events` show. */
import { createHash } from 'node:crypto';
import type { KubeObject, ResourceType } from '../api/meta.js';
import type { EventSeries, EventSubject, EventWriter, ObjectEvent } from '../runtime/event-recorder.js';
import { isAlreadyExists, isNamespaceTerminating } from './errors.js';
import { microTime } from './micro-time.js';
import type { KubeApi, ObjectRef } from './types.js';

interface RegardingEvent extends KubeObject {
  eventTime: string;
  reportingController: string;
  reportingInstance: string;
  regarding: EventSubject;
  type: ObjectEvent['type'];
  reason: string;
  note: string;
  action: string;
  series?: { count: number; lastObservedTime: string };
}

const RegardingEvents: ResourceType<RegardingEvent> = {
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
};

/** Who tells events. */
export interface EventReporter {
  /** A qualified name such as `example.com/controller`; kubectl shows it as From. */
  controller: string;
  instance: string;
}

/** Where Kubernetes wants the events of objects without a namespace. */
const CLUSTER_EVENTS = 'default';
/** A name has at most 253 characters. */
const MAX_SUBJECT_NAME = 200;

export function createEventWriter(api: Pick<KubeApi, 'create' | 'patch'>, reporter: EventReporter): EventWriter {
  return {
    async create(event, series, signal) {
      const { subject, type, reason, note, action, at } = event;
      const object: RegardingEvent = {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: refOf(event),
        eventTime: timeOf(at),
        reportingController: reporter.controller,
        reportingInstance: reporter.instance,
        regarding: subject,
        type,
        reason,
        note,
        action,
        ...(series === undefined ? {} : { series: seriesOf(series) }),
      };
      try {
        await api.create(RegardingEvents, object, { signal });
      } catch (error) {
        // Told before, as by the process that led before this one; or the namespace goes, and its events with it.
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
      }
    },
    async repeat(event, series, signal) {
      await api.patch(RegardingEvents, refOf(event), { series: seriesOf(series) }, { type: 'merge', signal });
    },
  };
}

/** The same for the same event, whoever tells it. */
function refOf({ subject, type, reason, note, at }: ObjectEvent): Required<ObjectRef> {
  const identity = JSON.stringify([subject.uid, type, reason, at, note]);
  const digest = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  return {
    namespace: subject.namespace ?? CLUSTER_EVENTS,
    name: `${subject.name.slice(0, MAX_SUBJECT_NAME).replace(/(?<![^a-z0-9])[^a-z0-9]+$/, '')}.${digest}`,
  };
}

function seriesOf({ count, lastAt }: EventSeries) {
  return { count, lastObservedTime: timeOf(lastAt) };
}

/** Times of others may have no milliseconds. */
function timeOf(time: string): string {
  return microTime(new Date(time).toISOString());
}
