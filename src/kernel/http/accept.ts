import type { RouteOptions } from 'fastify'
import type { App } from './app.ts'
import { edge } from './failures.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types of its answer. Default: those of its documented responses; undefined where the caller gets what there is. */
    produces?: readonly string[] | undefined
  }
}

export const JSON_TYPE = 'application/json'
export const CSV_TYPE = 'text/csv'

/**
 * Refuses requests that accept none of the media types of a route that answers JSON. Pages, texts and files have one type, which every caller gets,
 * and so has every failure.
 */
export function refuseUnacceptable(app: App): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, produces: producedBy(route) }
  })
  app.addHook('onRequest', function expectAcceptable({ headers: { accept }, routeOptions }, _reply, done) {
    const { produces } = routeOptions.config
    // The most common values, checked first.
    if (produces === undefined || accept === undefined || accept === '*/*' || accept === JSON_TYPE) done()
    else done(preferredType(accept, produces) === undefined ? notAcceptable(produces) : undefined)
  })
}

function producedBy({ method, schema, config }: RouteOptions): readonly string[] | undefined {
  if (config?.produces !== undefined) return config.produces
  const responses = Object.entries(schema?.response ?? {})
  // The caller is a browser that follows a link, or sends a form.
  const redirects = responses.some(([status]) => status.startsWith('3'))
  const isLink = method === 'GET' && (config?.redirects ?? []).length > 0
  if (redirects || isLink) return undefined
  const types = responses
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, response]) => Object.keys(response.content ?? { [JSON_TYPE]: response }))
  return types.includes(JSON_TYPE) ? types : undefined
}

export const notAcceptable = (available: readonly string[]) =>
  edge('not_acceptable', {
    hint: `The answer can be ${available.join(' or ')}; name it in the header Accept, or leave that out`,
    details: { available },
  })

/**
 * The media type that an Accept header weighs highest (RFC 9110 section 12.5.1); of equal ones, the first in the header, and for a wildcard the first
 * that is available. Undefined if it accepts none. A header without any media type is ignored.
 */
export function preferredType(accept: string, available: readonly string[]): string | undefined {
  const ranges = accept.split(',').flatMap(rangesIn)
  if (ranges.length === 0) return available[0]
  const [best] = available
    .flatMap((name) => weighed(name, ranges))
    .toSorted((one, other) => other.quality - one.quality || one.place - other.place)
  return best?.name
}

type MediaRange = { readonly name: string; readonly quality: number }

/** The media range of an element. Of its parameters only the quality counts. */
function rangesIn(text: string): readonly MediaRange[] {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const [type = '', subtype = '', ...others] = name.split('/')
  if (type === '' || subtype === '' || others.length > 0) return []
  const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  return [{ name, quality: quality === undefined ? 1 : Number(quality) || 0 }]
}

/** Its quality by the most specific range that includes it; none if the range excludes it. */
function weighed(name: string, ranges: readonly MediaRange[]) {
  const [type] = name.split('/')
  const place = [name, `${type}/*`, '*/*']
    .map((range) => ranges.findIndex((one) => one.name === range))
    .find((index) => index >= 0)
  const quality = ranges[place ?? -1]?.quality ?? 0
  return place === undefined || quality <= 0 ? [] : [{ name, place, quality }]
}
