/** Where the answer of a model or an MCP server goes; its end is the caller's business, after the call is counted. */
export interface AnswerSink {
  start(status: number, contentType: string, headers?: Readonly<Record<string, string>>): void;
  /** Resolves when more can be taken. */
  write(piece: string | Uint8Array): Promise<void>;
}
