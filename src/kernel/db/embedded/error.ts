/** The embedded server cannot run, and the message tells the operator why and what to do. */
export class EmbeddedServerError extends Error {
  override readonly name = 'EmbeddedServerError'
}
