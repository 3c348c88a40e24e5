/** The content of a published file for whoever holds its URL. */
import { boxNamespace } from '../../api/names.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun, RunFile } from '../../api/v1alpha1/agent-run.js';
import type { FileStore } from '../../files/file-store.js';
import { orUndefined } from '../../kube/errors.js';
import { DNS_LABEL, kubeCall } from '../kube-call.js';
import type { ScopeDeps } from '../scope.js';
import type { FileTarget } from './file-links.js';

export interface OpenedFile {
  file: RunFile;
  content: Buffer;
}

export interface FileReaderDeps extends Pick<ScopeDeps, 'api' | 'clock' | 'caches'> {
  files: Pick<FileStore, 'read'>;
}

/**
 * Reads a file whose URL was checked; undefined when it is gone. The run is read live: the URL may be younger than what the
 * cache of this pod knows, and a run that is being deleted has nothing to give.
 */
export async function openFile(deps: FileReaderDeps, target: FileTarget): Promise<OpenedFile | undefined> {
  const { box, run: name, sha256 } = target;
  const namespace = boxNamespace(box);
  if (!DNS_LABEL.test(namespace) || !DNS_LABEL.test(name) || deps.caches.Box.get(box)?.deleting !== false) return;
  const run = await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, { namespace, name }, { signal })));
  const file = run === undefined ? undefined : fileIn(run, target);
  const uid = run?.metadata.uid;
  if (file === undefined || uid === undefined || file.sha256 !== sha256) return;
  const content = await kubeCall(deps, (signal) => deps.files.read({ namespace, name, uid }, file, signal));
  return content === undefined ? undefined : { file, content };
}

function fileIn({ metadata, status }: AgentRun, { name, sha256 }: FileTarget): RunFile | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  return status?.files?.find((file) => file.name === name && file.sha256 === sha256);
}
