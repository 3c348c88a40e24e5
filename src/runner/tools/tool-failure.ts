/** A tool cannot do what it was asked; the message tells the model what is wrong and what to do. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}
