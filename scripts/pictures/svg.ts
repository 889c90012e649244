export type Theme = {
  readonly paper: string
  readonly ink: string
  readonly faint: string
  readonly line: string
  readonly box: string
  readonly inner: string
}

export type Drawing = { readonly width: number; readonly height: number; readonly parts: readonly string[] }

/** A position; for a text, its centre. */
type Place = { readonly x: number; readonly y: number }
export type Rectangle = Place & { readonly width: number; readonly height: number }

/** Character widths, generous because the reader's font is unknown. A `message` is drawn above lines. */
const CHARACTER = { label: 7.6, small: 6.3, message: 6.3 }

const FONT = 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif'

/** Throws if a text does not fit, instead of drawing overlapping texts. */
export function text({ x, y }: Place, content: string, size: keyof typeof CHARACTER, room: number): string {
  if (content.length * CHARACTER[size] > room) throw new Error(`The text does not fit: "${content}"`)
  return `<text class="${size}" x="${x}" y="${y}">${escaped(content)}</text>`
}

export const box = ({ x, y, width, height }: Rectangle, look: 'box' | 'inner' | 'note'): string =>
  `<rect class="${look}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`

export const line = (from: Place, to: Place, look: string): string =>
  `<path class="${look}" d="M${from.x} ${from.y}L${to.x} ${to.y}"/>`

/** The arrow head is drawn as a path, because some viewers do not colour markers like their line. */
export function arrow(from: Place, to: Place, look: 'asks' | 'answers'): string {
  const length = Math.hypot(to.x - from.x, to.y - from.y)
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length]
  const corner = (side: 1 | -1) =>
    `${round(to.x - 9 * dx - 4 * side * dy)} ${round(to.y - 9 * dy + 4 * side * dx)}`
  return `${line(from, to, look)}<path class="head" d="M${to.x} ${to.y}L${corner(1)}L${corner(-1)}Z"/>`
}

const round = (value: number): number => Math.round(value * 10) / 10

export const documentOf = (title: string, { width, height, parts }: Drawing, theme: Theme): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${styleOf(theme)}</style>`,
    `<rect class="paper" width="${width}" height="${height}" rx="8"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')

const styleOf = ({ paper, ink, faint, line, box, inner }: Theme): string =>
  [
    `text{font-family:${FONT};text-anchor:middle;dominant-baseline:central}`,
    `.label{font-size:14px;font-weight:600;fill:${ink}}.small,.message{font-size:12px;fill:${faint}}`,
    `.message{paint-order:stroke;stroke:${paper};stroke-width:5px}`,
    `.paper{fill:${paper}}.box{fill:${box};stroke:${line}}.inner{fill:${inner};stroke:${line}}`,
    `.note{fill:${inner};stroke:${line};stroke-dasharray:2 3}.life{stroke:${line};stroke-dasharray:4 4}`,
    `.asks,.answers{stroke:${faint};stroke-width:1.4;fill:none}.answers{stroke-dasharray:5 4}.head{fill:${faint}}`,
  ].join('')

const escaped = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
