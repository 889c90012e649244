/** The embedded server cannot run. The message gives the operator the reason and advice. */
export class EmbeddedServerError extends Error {
  override readonly name = 'EmbeddedServerError'
}
