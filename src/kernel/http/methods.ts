/** A HEAD is a GET whose answer leaves its body out (RFC 9110 section 9.3.2): what holds for the one holds for the other. */
export const isGet = ({ method }: { readonly method: string }): boolean =>
  method === 'GET' || method === 'HEAD'
