/** Characters of the URL of an image. */
export const IMAGE_MAX = 2_048

/** The URL of a picture in the form that is stored, which is the URL parser's; undefined when it is no http(s) URL. */
export function imageFrom(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  const isPlain = url !== null && url.username === '' && url.password === '' && url.href.length <= IMAGE_MAX
  return isPlain ? url.href : undefined
}
