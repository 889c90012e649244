import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type Encoded = { readonly encoding: 'br' | 'gzip' | undefined; readonly bytes: Buffer }

/** Bytes for everybody, as a browser takes them, by the header `accept-encoding`. They are compressed once, when that is first asked for. */
export function compressedOnce(plain: Buffer): (accepted: string) => Promise<Encoded> {
  const compressed = new Map<string, Promise<Buffer>>()
  return async (accepted) => {
    const encoding = encodingFor(accepted)
    if (encoding === undefined) return { encoding, bytes: plain }
    const bytes = compressed.get(encoding) ?? compress[encoding](plain)
    compressed.set(encoding, bytes)
    return { encoding, bytes: await bytes }
  }
}

const compress = {
  br: (plain: Buffer) =>
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (plain: Buffer) => promisify(gzip)(plain),
}

function encodingFor(accepted: string): 'br' | 'gzip' | undefined {
  const named = accepted
    .toLowerCase()
    .split(',')
    .map((one) => one.split(';').map((part) => part.trim()))
    .filter(([, ...parts]) => !parts.some((part) => part.startsWith('q=') && Number(part.slice(2)) === 0))
    .map(([name]) => name)
  return (['br', 'gzip'] as const).find((encoding) => named.includes(encoding))
}
