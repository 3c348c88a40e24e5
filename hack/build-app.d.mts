/** Bundles the web application into a folder. */
export function buildApp(outdir: string): Promise<void>;
