/** The projection of StorageClasses: enough to know the default one. */
import { StorageClasses } from '../kube/core-types.js';
import type { StorageClass } from '../kube/core-types.js';
import type { InformerOptions } from '../kube/types.js';

/** A StorageClass, for whoever chooses one. */
export interface StorageClassProjection {
  name: string;
  isDefault: boolean;
  createdAt: number;
}

const ANNOTATION_DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

export function projectStorageClass({ metadata }: StorageClass): StorageClassProjection {
  return {
    name: metadata.name,
    isDefault: metadata.annotations?.[ANNOTATION_DEFAULT_CLASS] === 'true',
    createdAt: Date.parse(metadata.creationTimestamp ?? ''),
  };
}

export const storageClassInformer: InformerOptions<StorageClass, StorageClassProjection> = {
  type: StorageClasses,
  project: projectStorageClass,
};
