/** Horizontal bars in groups, on a logarithmic scale, because neighbours differ by factors. */
export type Group = { readonly title: string; readonly bars: readonly Bar[] }
export type Bar = { readonly name: string; readonly value: number; readonly isOurs: boolean }

type Theme = Readonly<Record<'paper' | 'ink' | 'faint' | 'line' | 'ours' | 'other', string>>

export const THEMES: Readonly<Record<'light' | 'dark', Theme>> = {
  light: {
    paper: '#ffffff',
    ink: '#1f2328',
    faint: '#59636e',
    line: '#d1d9e0',
    ours: '#0969da',
    other: '#afb8c1',
  },
  dark: {
    paper: '#0d1117',
    ink: '#f0f6fc',
    faint: '#9198a1',
    line: '#3d444d',
    ours: '#4493f8',
    other: '#565d66',
  },
}

const FONT = 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif'
const WIDTH = 860
/** Where bars begin, and the room for their values. */
const [LEFT, RIGHT] = [300, 80]
const [LINE, GAP, TOP] = [20, 14, 44]

export function drawChart(title: string, groups: readonly Group[], theme: Theme): string {
  const values = groups.flatMap(({ bars }) => bars.map(({ value }) => value))
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)))
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values)))
  const width = (value: number) =>
    ((WIDTH - LEFT - RIGHT) * Math.log(value / low)) / Math.max(Math.log(high / low), 1)
  const rows = groups.flatMap((group, index) => [
    { kind: 'title', text: group.title, space: index === 0 ? 0 : GAP } as const,
    ...group.bars.map((bar) => ({ kind: 'bar', bar, space: 0 }) as const),
  ])
  let y = TOP
  const parts = rows.map((row) => {
    y += row.space + LINE
    if (row.kind === 'title') return label(row.text, 16, y, 'title')
    const { name, value, isOurs } = row.bar
    const length = round(width(value))
    return [
      label(name, LEFT - 10, y, 'name'),
      `<rect class="${isOurs ? 'ours' : 'other'}" x="${LEFT}" y="${y - 7}" width="${length}" height="14" rx="2"/>`,
      label(amount(value), LEFT + length + 6, y, 'value'),
    ].join('\n')
  })
  return documentOf(title, y + LINE, parts, theme)
}

const label = (text: string, x: number, y: number, look: string): string =>
  `<text class="${look}" x="${x}" y="${y}">${escaped(text)}</text>`

function documentOf(title: string, height: number, parts: readonly string[], theme: Theme): string {
  const style = [
    `text{font-family:${FONT};font-size:12px;dominant-baseline:central;fill:${theme.ink}}`,
    `.head{font-size:15px;font-weight:600}.title{font-weight:600}.name{text-anchor:end;fill:${theme.faint}}`,
    `.value{fill:${theme.faint}}.ours{fill:${theme.ours}}.other{fill:${theme.other}}`,
    `.paper{fill:${theme.paper};stroke:${theme.line}}`,
  ].join('')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}" rx="8"/>`,
    label(title, 16, 26, 'head'),
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

const round = (value: number): number => Math.round(value * 10) / 10

/** Three digits: more would claim more than was measured. */
export function amount(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value >= 1_000) return Number(value.toPrecision(3)).toLocaleString('en')
  return `${Number(value.toPrecision(3))}`
}

const escaped = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
