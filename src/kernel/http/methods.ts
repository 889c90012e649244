/** HEAD is GET without the body of the answer (RFC 9110 section 9.3.2), so the same rules apply. */
export const isGet = ({ method }: { readonly method: string }): boolean =>
  method === 'GET' || method === 'HEAD'
