/** The files that a run published. */
import type { PublishedFile } from './api.js';
import { sizeOf } from './parts.js';

/** Each opens by a URL that expires; reading the run again gives a new one. */
export function Files({ files }: { files: readonly PublishedFile[] }) {
  return (
    <ul className="files card">
      {files.map(({ name, mediaType, bytes, url, description }) => (
        <li key={name} className="row">
          {url === null ? <span>{name}</span> : <a href={url}>{name}</a>}
          <span className="grow small muted">{description}</span>
          <span className="small muted">
            {mediaType}, {sizeOf(bytes)}
          </span>
        </li>
      ))}
    </ul>
  );
}
