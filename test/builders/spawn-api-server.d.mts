export declare function spawnApiServer(): Promise<{ kubeconfig: string; stop: () => Promise<void> }>;
